"""ShareGroupHeartbeat, version 1 (KIP-932): join, heartbeat and leave."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.share import ShareHeartbeat
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
    with_message,
)
from kafkaio.testing._handlers._share import check_enabled
from kafkaio.testing._security.acls import Operation, ResourceType


def _check_topics(context: RequestContext[ShareGroupHeartbeatRequest]) -> None:
    """Check that the client may see each topic that it subscribes to."""
    for name in context.request.subscribed_topic_names or ():
        if code := context.rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise Refusal(code)


def _check_fields(context: RequestContext[ShareGroupHeartbeatRequest]) -> None:
    """Check the fields of the request."""
    request = context.request
    invalid = None
    if not request.member_id.strip():
        # Without a message, as in Kafka.
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if not request.group_id.strip():
        invalid = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        invalid = "RackId can't be empty."
    elif request.member_epoch == 0 and not request.subscribed_topic_names:
        invalid = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < -1:
        invalid = "MemberEpoch is invalid."
    if invalid is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, invalid)


@handler(
    ShareGroupHeartbeatRequest,
    check_enabled,
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    _check_topics,
    _check_fields,
    coordinated(coordinator_of, "group_id"),
    refused=with_message,
)
async def handle(
    context: RequestContext[ShareGroupHeartbeatRequest],
) -> ShareGroupHeartbeatResponse:
    """Serve a heartbeat: of a member that joins, stays or leaves. Never waits."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    names = request.subscribed_topic_names
    beat = ShareHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        rack=request.rack_id,
        names=None if names is None else frozenset(names),
        client_id=context.header.client_id or "",
        client_host=f"/{context.connection.client_host}",
    )
    reply = coordinator.share_heartbeat(request.group_id, beat)
    if reply.error:
        raise Refusal(reply.error, reply.message)
    answer = ShareGroupHeartbeatResponse(
        member_id=beat.member_id, member_epoch=reply.epoch
    )
    if reply.epoch >= 0:
        interval = coordinator.config_of(request.group_id).share_heartbeat_interval
        answer.heartbeat_interval_ms = round(interval * 1000)
    if reply.assignment is not None:
        answer.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic(reply.assignment).items()
            ]
        )
    return answer
