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
from kafkaio.testing._groups.assignors import ASSIGNORS, Slot
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.kip848_member import LEAVE_STATIC, Kip848Heartbeat
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(ConsumerGroupHeartbeatRequest)
async def handle(
    context: RequestContext[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse:
    """Serve one request; the answer comes at once."""
    request = context.request
    if not context.cluster.has_consumer_groups:
        return _failed(ErrorCode.UNSUPPORTED_VERSION)
    coordinator = coordinator_of(context.cluster)
    denied = _denied(context)
    if denied:
        return _failed(denied)
    invalid = _invalid(request, context.version)
    if invalid is not None:
        return _failed(ErrorCode.INVALID_REQUEST, invalid)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        known = ", ".join(sorted(ASSIGNORS))
        return _failed(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported."
            f" Supported assignors: {known}.",
        )
    error = coordinator.refuse(context.node.node_id, request.group_id)
    if error:
        return _failed(error)
    beat = _beat(context)
    reply = coordinator.kip848_heartbeat(request.group_id, beat)
    if reply.error:
        return _failed(reply.error, reply.message)
    answer = ConsumerGroupHeartbeatResponse(
        member_id=beat.member_id, member_epoch=reply.epoch
    )
    if reply.epoch >= 0:
        config = coordinator.config_of(request.group_id)
        interval = config.consumer_heartbeat_interval
        answer.heartbeat_interval_ms = round(interval * 1000)
    if reply.assignment is not None:
        answer.assignment = _assignment(reply.assignment)
    return answer


def _denied(context: RequestContext[ConsumerGroupHeartbeatRequest]) -> ErrorCode:
    """The error for a client that may not use the group or see a topic of it."""
    denied = context.rights.denied(
        Operation.READ, ResourceType.GROUP, context.request.group_id
    )
    for name in context.request.subscribed_topic_names or ():
        denied = denied or context.rights.denied(
            Operation.DESCRIBE, ResourceType.TOPIC, name
        )
    return denied


def _failed(
    error: ErrorCode, message: str | None = None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


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
