"""ConsumerGroupHeartbeat, versions 0 and 1 (KIP-848): join, heartbeat and leave."""

from __future__ import annotations

from functools import partial

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.assignors import ASSIGNORS, Slot
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.kip848_member import LEAVE_STATIC, Kip848Heartbeat
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
    with_message,
)
from kafkaio.testing._security.acls import Operation, ResourceType


def _check_protocol(context: RequestContext[ConsumerGroupHeartbeatRequest]) -> None:
    if not context.cluster.has_consumer_groups:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)


def _check_topics(context: RequestContext[ConsumerGroupHeartbeatRequest]) -> None:
    """Check that the client may see each topic that it subscribes to by name."""
    for name in context.request.subscribed_topic_names or ():
        if code := context.rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise Refusal(code)


def _check_fields(context: RequestContext[ConsumerGroupHeartbeatRequest]) -> None:
    """Check that the fields of the request agree with one another."""
    invalid = _invalid(context.request, context.version)
    if invalid is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, invalid)


def _invalid(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """Return the reason why a request is invalid; None if it is valid."""
    if not request.member_id and (version >= 1 or request.member_epoch != 0):
        return "MemberId can't be empty."
    if not request.group_id:
        return "GroupId can't be empty."
    if request.instance_id is not None and not request.instance_id:
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id:
        return "RackId can't be empty."
    if request.member_epoch == LEAVE_STATIC and request.instance_id is None:
        return "InstanceId can't be null."
    if request.member_epoch < LEAVE_STATIC:
        return "MemberEpoch is invalid."
    return _invalid_join(request) if request.member_epoch == 0 else None


def _check_assignor(context: RequestContext[ConsumerGroupHeartbeatRequest]) -> None:
    assignor = context.request.server_assignor
    if assignor is not None and assignor not in ASSIGNORS:
        known = ", ".join(sorted(ASSIGNORS))
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported."
            f" Supported assignors: {known}.",
        )


@handler(
    ConsumerGroupHeartbeatRequest,
    _check_protocol,
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    # Before the fields are checked, so that a client without the right learns nothing
    # of them.
    _check_topics,
    _check_fields,
    _check_assignor,
    coordinated(coordinator_of, "group_id"),
    refused=with_message,
)
async def handle(
    context: RequestContext[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse:
    """Serve a heartbeat: of a member that joins, stays or leaves. Never waits."""
    group_id = context.request.group_id
    coordinator = coordinator_of(context.cluster)
    beat = _beat(context)
    reply = coordinator.kip848_heartbeat(group_id, beat)
    if reply.error:
        raise Refusal(reply.error, reply.message)
    answer = ConsumerGroupHeartbeatResponse(
        member_id=beat.member_id, member_epoch=reply.epoch
    )
    if reply.epoch >= 0:
        interval = coordinator.config_of(group_id).consumer_heartbeat_interval
        answer.heartbeat_interval_ms = round(interval * 1000)
    if reply.assignment is not None:
        answer.assignment = _assignment(reply.assignment)
    return answer


def _invalid_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if names is None and regex is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )
    return None


def _beat(
    context: RequestContext[ConsumerGroupHeartbeatRequest],
) -> Kip848Heartbeat:
    request = context.request
    owned: frozenset[Slot] | None = None
    if request.topic_partitions is not None:
        owned = frozenset(
            (topic.topic_id, partition)
            for topic in request.topic_partitions
            for partition in topic.partitions
        )
    timeout, names = (
        request.rebalance_timeout_ms,
        request.subscribed_topic_names,
    )
    return Kip848Heartbeat(
        # Before version 1 the coordinator chooses the id (KIP-1082).
        member_id=request.member_id or str(random_uuid()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack=request.rack_id,
        rebalance_timeout=None if timeout == -1 else timeout / 1000,
        names=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=owned,
        client_id=context.header.client_id or "",
        client_host=f"/{context.connection.client_host}",
        sees=partial(context.rights.may, Operation.DESCRIBE, ResourceType.TOPIC),
    )


def _assignment(slots: frozenset[Slot]) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=partitions
            )
            for topic_id, partitions in by_topic(slots).items()
        ]
    )
