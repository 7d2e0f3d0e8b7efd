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
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._rights import Rights, rights_of
from kafkaio.testing._security.acls import Operation, ResourceType

_UP_TO_HIGH_WATERMARK: Final = -1


async def handle(
    node: Node,
    header: RequestHeader,
    request: DeleteRecordsRequest,
    connection: ServerConnection,
) -> DeleteRecordsResponse:
    """Delete the records before an offset, by moving the start of the log."""
    del header
    rights = rights_of(node, connection)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _one(node, topic.name, asked, connection, rights)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _one(
    node: Node,
    topic: str,
    asked: DeleteRecordsPartition,
    connection: ServerConnection,
    rights: Rights,
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1
    )
    try:
        rights.require(Operation.DELETE, ResourceType.TOPIC, topic)
        partition = node.cluster.require_partition(topic, asked.partition_index)
        connection.check(topic, partition.index)
        partition.check_leader(node.node_id)
        result.low_watermark = partition.delete_records(
            partition.high_watermark
            if asked.offset == _UP_TO_HIGH_WATERMARK
            else asked.offset
        )
    except Refusal as refusal:
        result.error_code = refusal.code
    return result
