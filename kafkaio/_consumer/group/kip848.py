"""Sends the heartbeats of a KIP-848 member, and returns the answers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from uuid import UUID

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.kip848.membership import Kip848Membership
from kafkaio._machines.membership.protocol import Effects
from kafkaio._runtime.clock import now, roll
from kafkaio.errors import KafkaError, ProtocolError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.protocol.messages.metadata import MetadataRequest

# The feature of the cluster that enables the protocol. Brokers from 3.7 to 3.9 list the
# request as a preview, whether or not they serve it.
_FEATURE: Final = "group.version"
# From this version on members choose their ids (KIP-1082), and brokers match patterns.
_COMPLETE_FROM: Final = 1
# The version of Metadata from which topics are asked for by their ids.
_BY_ID_FROM: Final = 12


def _check_epoch(reply: ConsumerGroupHeartbeatResponse) -> None:
    """Check that a member has an epoch; the answer to a leave has -1 or -2."""
    if not reply.error_code and reply.member_epoch <= 0:
        error = ProtocolError(f"{reply.member_epoch} is not the epoch of a member")
        error.retriable = True  # the next answer may have the right one
        raise error


class Kip848Requests:
    """Sends the requests of the machine, and passes it the answer or the failure.

    Args:
        rpc: sends requests to the coordinator.
        config: the consumer's options.
        member: the machine.
    """

    def __init__(
        self, rpc: GroupRpc, config: ConsumerConfig, member: Kip848Membership
    ) -> None:
        self._rpc = rpc
        self._config = config
        self._member = member
        self._timeout = config.request_timeout_ms / 1000
        # Whether a heartbeat was handed to a connection: then the coordinator may know
        # this member.
        self._has_sent = False

    async def perform(self, effect: fx.SendGroupRequest) -> Effects:
        """Send one heartbeat.

        If it fails, the machine decides what follows. If the call is cancelled, the
        request may still take effect.

        Returns:
            The effects that the machine decides.
        """
        assert isinstance(effect, fx.SendConsumerGroupHeartbeat)
        try:
            if effect.is_leave:
                return await self._leave(effect)
            return await self._heartbeat(effect)
        except KafkaError as error:
            self._rpc.failure = error
            return self._member.request_failed(effect.ticket, error, now(), roll())

    async def _heartbeat(self, effect: fx.SendConsumerGroupHeartbeat) -> Effects:
        timeout = min(self._timeout, effect.timeout)
        connection = await self._rpc.coordinator.connection(
            self._rpc.connection_class, now() + timeout
        )
        if effect.is_new:
            self._check_offered(connection.versions)
        version = connection.versions.usable(ConsumerGroupHeartbeatRequest)
        if version < _COMPLETE_FROM and effect.regex:
            return self._member.regex_refused(effect.ticket)
        request = self._request(effect, version)
        sent_at = now()
        reply = await self._rpc.coordinator.call_on(
            connection, request, timeout=timeout, is_vital=True, on_sent=self._sent
        )
        _check_epoch(reply)
        if request.member_id:
            reply.member_id = request.member_id  # the coordinator has no other to give
        self._rpc.heartbeat_answered(sent_at)
        self._rpc.answered(apis.CONSUMER_GROUP_HEARTBEAT, reply.error_code)
        return self._member.heartbeat_answered(effect.ticket, reply, now(), roll())

    def _sent(self) -> None:
        self._has_sent = True

    async def _leave(self, effect: fx.SendConsumerGroupHeartbeat) -> Effects:
        if not self._has_sent:
            return self._member.leave_ended(effect.ticket, now())

        def request(versions: ApiVersions) -> ConsumerGroupHeartbeatRequest:
            version = versions.usable(ConsumerGroupHeartbeatRequest)
            return self._request(effect, version)

        # On the connection of the heartbeats: a join that is under way may not
        # overtake the request.
        await self._rpc.leave(
            effect.ticket,
            request,
            lambda answer: answer.error_code,
            self._rpc.connection_class,
            self._config.session_timeout_ms / 1000,
        )
        return self._member.leave_ended(effect.ticket, now())

    def send_at_once(self, leave: fx.SendGroupRequest) -> None:
        """Send a request to leave if a connection is open; its answer is dropped."""
        assert isinstance(leave, fx.SendConsumerGroupHeartbeat)
        connection = self._rpc.coordinator.ready(self._rpc.connection_class)
        if connection is not None:
            version = connection.versions.usable(ConsumerGroupHeartbeatRequest)
            request = self._request(leave, version)
            self._rpc.sending_leave(leave.ticket)
            connection.submit(request, timeout=self._timeout).cancel()

    def _check_offered(self, versions: ApiVersions) -> None:
        in_force = versions.finalized_features.get(_FEATURE, 0)
        if self._config.group_protocol != "auto":
            return
        if in_force < 1:
            raise UnsupportedVersion(
                "the cluster does not offer the KIP-848 group protocol: its feature "
                f"{_FEATURE} is {in_force}"
            )
        known = versions.usable(MetadataRequest)
        if known < _BY_ID_FROM:  # assignments name topics by ids
            raise UnsupportedVersion(
                "the KIP-848 group protocol needs Metadata version "
                f"{_BY_ID_FROM}, and {known} is used here"
            )

    def _request(
        self, effect: fx.SendConsumerGroupHeartbeat, version: int
    ) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._rpc.group_id,
            member_id=effect.member_id,
            member_epoch=effect.member_epoch,
            instance_id=self._config.group_instance_id,
            rack_id=effect.rack,
            subscribed_topic_regex=effect.regex,
            server_assignor=effect.assignor,
        )
        if effect.rebalance is not None:
            request.rebalance_timeout_ms = round(effect.rebalance * 1000)
        if effect.names is not None:
            request.subscribed_topic_names = sorted(effect.names)
        if effect.owned is not None:
            request.topic_partitions = list(_by_topic(effect.owned))
        if version < _COMPLETE_FROM:
            request.subscribed_topic_regex = None
            request.member_id = "" if effect.is_new else effect.member_id
        return request


def _by_topic(
    slots: Iterable[tuple[UUID, int]],
) -> Iterable[ConsumerGroupHeartbeatRequestTopicPartitions]:
    for topic_id, group in groupby(sorted(slots), key=lambda slot: slot[0]):
        yield ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=topic_id, partitions=[number for _, number in group]
        )
