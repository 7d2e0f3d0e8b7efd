"""AlterShareGroupOffsets, version 0 (KIP-932): change where share groups begin."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
    with_message,
)
from kafkaio.testing._handlers._share import check_enabled
from kafkaio.testing._handlers._share_offsets import NO_PARTITION, empty_group
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import share_leaders_of
from kafkaio.testing._share.states import ShareKey


@handler(
    AlterShareGroupOffsetsRequest,
    check_enabled,
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    coordinated(coordinator_of, "group_id"),
    refused=with_message,
)
async def handle(
    context: RequestContext[AlterShareGroupOffsetsRequest],
) -> AlterShareGroupOffsetsResponse:
    """Set the first offsets of partitions, if the group has no members.

    A leader that has the state of a partition in memory goes on with that.
    """
    group_id = context.request.group_id
    empty_group(context.cluster, group_id, creates=True)
    return AlterShareGroupOffsetsResponse(
        responses=[_alter(context, group_id, one) for one in context.request.topics]
    )


def _alter(
    context: RequestContext[AlterShareGroupOffsetsRequest],
    group_id: str,
    asked: AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponseTopic:
    states = share_leaders_of(context.cluster).states
    answer = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
    denied = context.rights.denied(Operation.READ, ResourceType.TOPIC, asked.topic_name)
    topic = None if denied else context.cluster.known(asked.topic_name)
    if topic is not None:
        answer.topic_id = topic.topic_id
    for one in asked.partitions:
        found = AlterShareGroupOffsetsResponsePartition(
            partition_index=one.partition_index, error_code=denied
        )
        answer.partitions.append(found)
        if denied:
            continue
        if topic is None or not 0 <= one.partition_index < len(topic.partitions):
            found.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found.error_message = NO_PARTITION
            continue
        key = ShareKey(group_id, topic.topic_id, one.partition_index)
        states.reset(key, one.start_offset)
    return answer
