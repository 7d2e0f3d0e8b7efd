"""DeleteRecords, versions 0 to 2 (KIP-107)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

#: Everything that consumers can read.
_UP_TO_HIGH_WATERMARK: Final = -1


@handler(DeleteRecordsRequest, by_partition=True)
async def handle(
    context: RequestContext[DeleteRecordsRequest],
) -> DeleteRecordsResponse:
    """Delete the records before an offset, by moving the start of the log."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _one(context, topic.name, asked) for asked in topic.partitions
                ],
            )
            for topic in context.request.topics
        ]
    )


def _one(
    context: RequestContext[DeleteRecordsRequest],
    topic: str,
    asked: DeleteRecordsPartition,
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1
    )
    try:
        context.rights.require(Operation.DELETE, ResourceType.TOPIC, topic)
        partition = context.cluster.require_partition(topic, asked.partition_index)
        context.connection.check(topic, partition.index)
        partition.check_leader(context.node.node_id)
        result.low_watermark = partition.delete_records(
            partition.high_watermark
            if asked.offset == _UP_TO_HIGH_WATERMARK
            else asked.offset
        )
    except Refusal as refusal:
        result.error_code = refusal.code
    return result
