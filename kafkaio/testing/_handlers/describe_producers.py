"""DescribeProducers, version 0 (KIP-664)."""

from __future__ import annotations

from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
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
    request: DescribeProducersRequest,
    connection: ServerConnection,
) -> DescribeProducersResponse:
    """Describe the producers of the partitions that this node leads."""
    del header
    rights = rights_of(node, connection)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(node, topic.name, index, connection, rights)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(
    node: Node, topic: str, index: int, connection: ServerConnection, rights: Rights
) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        rights.require(Operation.READ, ResourceType.TOPIC, topic)
        connection.check(topic, index)
        partition = node.cluster.require_partition(topic, index)
        partition.check_leader(node.node_id)
    except Refusal as refusal:
        refusal.write_to(answer)
        return answer
    partition.open()
    answer.active_producers = [
        ProducerState(
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            last_sequence=one.last_sequence,
            last_timestamp=one.timestamp,
            coordinator_epoch=one.coordinator_epoch,
            current_txn_start_offset=one.first_offset,
        )
        for one in partition.producers.image()
    ]
    return answer
