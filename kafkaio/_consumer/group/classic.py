"""Sends the requests of a member of the classic protocol, and returns the answers."""

from __future__ import annotations

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.classic.membership import (
    PROTOCOL_TYPE,
    ClassicMembership,
)
from kafkaio._machines.membership.protocol import Effects
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now, roll
from kafkaio.errors import InternalError, KafkaError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkaio.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kafkaio.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

# From this version on JoinGroup supports static members (KIP-345). An older broker
# would take a static member for a dynamic one, and two of one name for two members.
_STATIC_FROM = 5
# From this version on LeaveGroup has a list of members.
_LEAVE_LIST_FROM = 3
# Seconds for which JoinGroup is waited for beyond the rebalance timeout.
_JOIN_MARGIN = 5.0


class ClassicRequests:
    """Sends the requests of the machine, and passes it the answer or the failure.

    Args:
        rpc: sends requests to the coordinator.
        config: the consumer's options.
        member: the machine.
    """

    def __init__(
        self, rpc: GroupRpc, config: ConsumerConfig, member: ClassicMembership
    ) -> None:
        self._rpc = rpc
        self._config = config
        self._member = member
        self._timeout = config.request_timeout_ms / 1000

    async def perform(self, effect: fx.SendGroupRequest) -> Effects:
        """Send one request.

        If it fails, the machine decides what follows. If the call is cancelled, the
        request may still take effect.

        Returns:
            The effects that the machine decides.
        """
        try:
            match effect:
                case fx.SendJoin():
                    return await self._join(effect)
                case fx.SendSync():
                    return await self._sync(effect)
                case fx.SendHeartbeat():
                    return await self._heartbeat(effect)
                case fx.SendLeave():
                    return await self._leave(effect)
                case fx.SendProbe():
                    return await self._probe(effect)
                case _:  # no other machine's requests come here
                    raise InternalError(f"not of the classic protocol: {effect!r}")
        except KafkaError as error:
            self._rpc.failure = error
            return self._member.request_failed(effect.ticket, error, now(), roll())

    async def _join(self, effect: fx.SendJoin) -> Effects:
        # The coordinator answers when all members have joined, or the rebalance timeout
        # is over. With the usual timeout, a group that rebalances would look like a
        # coordinator that hangs.
        answer_timeout = self._config.max_poll_interval_ms / 1000 + _JOIN_MARGIN
        connection = await self._rpc.coordinator.connection(
            self._rpc.connection_class,
            now() + min(self._timeout, self._member.config.answer_timeout),
        )
        self._check_static(connection)
        request = JoinGroupRequest(
            group_id=self._rpc.group_id,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.max_poll_interval_ms,
            member_id=effect.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=blob)
                for name, blob in effect.protocols
            ],
            reason=effect.reason,
        )
        with self._rpc.parked(connection):
            reply = await self._rpc.coordinator.call_on(
                connection,
                request,
                timeout=max(self._timeout, answer_timeout),
                is_vital=True,
            )
        self._rpc.answered(apis.JOIN_GROUP, reply.error_code)
        if reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            await self._name_protocol(reply)
        return self._member.join_answered(effect.ticket, reply, now(), roll())

    async def _name_protocol(self, reply: JoinGroupResponse) -> None:
        # The refusal does not name the protocol of the group; the user needs it.
        request = DescribeGroupsRequest(groups=[self._rpc.group_id])
        try:
            answer = await self._rpc.coordinator.call(
                request, ConnectionClass.SHARED, timeout=self._timeout
            )
        except KafkaError:
            return  # perhaps this is not authorized; the refusal itself is enough
        for group in answer.groups:
            reply.protocol_type = group.protocol_type or None
            reply.protocol_name = group.protocol_data or None

    def _check_static(self, connection: Connection) -> None:
        name = self._config.group_instance_id
        version = connection.versions.usable(JoinGroupRequest)
        if name is not None and version < _STATIC_FROM:
            raise UnsupportedVersion(
                f"group_instance_id={name!r} needs JoinGroup {_STATIC_FROM}; "
                f"the coordinator of {self._rpc.group_id!r} has {version}"
            )

    async def _sync(self, effect: fx.SendSync) -> Effects:
        connection = await self._rpc.coordinator.connection(
            self._rpc.connection_class, now() + self._timeout
        )
        request = SyncGroupRequest(
            group_id=self._rpc.group_id,
            generation_id=effect.generation,
            member_id=effect.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=effect.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=blob)
                for member, blob in effect.assignments
            ],
        )
        with self._rpc.parked(connection):
            reply = await self._rpc.coordinator.call_on(
                connection, request, timeout=self._timeout
            )
        self._rpc.answered(apis.SYNC_GROUP, reply.error_code)
        return self._member.sync_answered(effect.ticket, reply, now(), roll())

    async def _probe(self, effect: fx.SendProbe) -> Effects:
        is_alive = await self._rpc.probe(effect.timeout)
        return self._member.probe_ended(
            effect.ticket, now(), roll(), is_silent=not is_alive
        )

    async def _heartbeat(self, effect: fx.SendHeartbeat) -> Effects:
        sent_at = now()
        reply = await self._rpc.coordinator.call(
            HeartbeatRequest(
                group_id=self._rpc.group_id,
                generation_id=effect.generation,
                member_id=effect.member_id,
                group_instance_id=self._config.group_instance_id,
            ),
            self._rpc.connection_class,
            timeout=min(self._timeout, effect.timeout),
            is_vital=True,
        )
        self._rpc.heartbeat_answered(sent_at)
        self._rpc.answered(apis.HEARTBEAT, reply.error_code)
        return self._member.heartbeat_answered(
            effect.ticket, reply.error_code, now(), roll()
        )

    async def _leave(self, effect: fx.SendLeave) -> Effects:
        def request(versions: ApiVersions) -> LeaveGroupRequest:
            return self._leave_request(effect, versions)

        # Not on the member's own connection: there LeaveGroup would wait behind a
        # JoinGroup that is not answered before this member has left.
        await self._rpc.leave(
            effect.ticket,
            request,
            _leave_code,
            ConnectionClass.SHARED,
            self._member.config.session,
        )
        return self._member.leave_ended(effect.ticket, now())

    def send_at_once(self, leave: fx.SendGroupRequest) -> None:
        """Send a request to leave if a connection is open; its answer is dropped."""
        assert isinstance(leave, fx.SendLeave)
        connection = self._rpc.coordinator.ready(
            ConnectionClass.SHARED, self._rpc.connection_class
        )
        if connection is not None:
            request = self._leave_request(leave, connection.versions)
            self._rpc.sending_leave(leave.ticket)
            connection.submit(request, timeout=self._timeout).cancel()

    def _leave_request(
        self, effect: fx.SendLeave, versions: ApiVersions
    ) -> LeaveGroupRequest:
        request = LeaveGroupRequest(group_id=self._rpc.group_id)
        if versions.usable(LeaveGroupRequest) < _LEAVE_LIST_FROM:
            request.member_id = effect.member_id
        else:
            request.members = [
                MemberIdentity(member_id=effect.member_id, reason=effect.reason)
            ]
        return request


def _leave_code(answer: LeaveGroupResponse) -> int:
    # Some brokers refuse each member of the list, others all of it.
    codes = [answer.error_code, *(member.error_code for member in answer.members)]
    return next((code for code in codes if code), 0)
