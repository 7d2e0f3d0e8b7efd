"""OffsetForLeaderEpoch, versions 2 to 4 (KIP-320)."""

from __future__ import annotations

from kafkaio.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._rights import Rights, rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: OffsetForLeaderEpochRequest,
    connection: ServerConnection,
) -> OffsetForLeaderEpochResponse:
    """Return the end offsets of leader epochs."""
    del header
    rights = rights_of(node, connection)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _one(node, topic.topic, asked, connection, rights)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _one(
    node: Node,
    topic: str,
    asked: OffsetForLeaderPartition,
    connection: ServerConnection,
    rights: Rights,
) -> EpochEndOffset:
    result = EpochEndOffset(partition=asked.partition)
    try:
        # Whoever may act for the cluster may do so for each of its topics.
        if not rights.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            rights.require(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        partition = node.cluster.require_partition(topic, asked.partition)
        connection.check(topic, partition.index)
        partition.check_epoch(asked.current_leader_epoch, node.node_id)
        partition.check_leader(node.node_id)
    except Refusal as refusal:
        result.error_code = refusal.code
        return result
    found = partition.end_of_epoch(asked.leader_epoch)
    result.leader_epoch, result.end_offset = found
    return result
