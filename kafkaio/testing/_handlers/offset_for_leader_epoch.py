"""OffsetForLeaderEpoch, versions 2 to 4 (KIP-320)."""

from __future__ import annotations

from kafkaio.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(OffsetForLeaderEpochRequest, by_partition=True)
async def handle(
    context: RequestContext[OffsetForLeaderEpochRequest],
) -> OffsetForLeaderEpochResponse:
    """Return the end offsets of leader epochs."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _one(context, topic.topic, asked) for asked in topic.partitions
                ],
            )
            for topic in context.request.topics
        ]
    )


def _one(
    context: RequestContext[OffsetForLeaderEpochRequest],
    topic: str,
    asked: OffsetForLeaderPartition,
) -> EpochEndOffset:
    result = EpochEndOffset(partition=asked.partition)
    try:
        # A right to act for the cluster includes each of its topics, as for brokers.
        if not context.rights.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            context.rights.require(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        partition = context.cluster.require_partition(topic, asked.partition)
        context.connection.check(topic, partition.index)
        partition.check_epoch(asked.current_leader_epoch, context.node.node_id)
        partition.check_leader(context.node.node_id)
    except Refusal as refusal:
        result.error_code = refusal.code
        return result
    found = partition.end_of_epoch(asked.leader_epoch)
    result.leader_epoch, result.end_offset = found
    return result
