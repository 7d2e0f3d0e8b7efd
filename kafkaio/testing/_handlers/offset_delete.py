"""OffsetDelete, version 0: delete committed offsets of a group."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import subscribed_topics
from kafkaio.testing._groups.share import ShareGroup
from kafkaio.testing._handlers._groups import for_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(OffsetDeleteRequest, for_group(Operation.DELETE))
async def handle(context: RequestContext[OffsetDeleteRequest]) -> OffsetDeleteResponse:
    """Delete offsets, but not of topics that members subscribe to."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    group = coordinator.find(request.group_id)
    if group is None or isinstance(group, ShareGroup):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND)
    if (
        isinstance(group, ClassicGroup)
        and group.members
        and group.protocol_type != "consumer"
    ):
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    # None if the subscriptions cannot be read: then no offset is safe to delete.
    subscribed = subscribed_topics(group)
    answer = OffsetDeleteResponse()
    for topic in request.topics:
        answered = OffsetDeleteResponseTopic(name=topic.name)
        answer.topics.append(answered)
        count = coordinator.cluster.partition_count(topic.name)
        denied = context.rights.denied(Operation.READ, ResourceType.TOPIC, topic.name)
        is_used = subscribed is None or topic.name in subscribed
        for one in topic.partitions:
            code = denied or _refuse(one.partition_index, count, is_used=is_used)
            if not code:
                coordinator.forget(request.group_id, (topic.name, one.partition_index))
            answered.partitions.append(
                OffsetDeleteResponsePartition(
                    partition_index=one.partition_index, error_code=code
                )
            )
    return answer


def _refuse(partition: int, count: int, *, is_used: bool) -> ErrorCode:
    if not 0 <= partition < count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_used else ErrorCode.NONE
