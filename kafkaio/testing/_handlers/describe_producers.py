"""DescribeProducers, version 0 (KIP-664)."""

from __future__ import annotations

from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(DescribeProducersRequest, by_partition=True)
async def handle(
    context: RequestContext[DescribeProducersRequest],
) -> DescribeProducersResponse:
    """Describe the producers of the partitions that this node leads."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(context, topic.name, index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in context.request.topics
        ]
    )


def _describe(
    context: RequestContext[DescribeProducersRequest], topic: str, index: int
) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        context.rights.require(Operation.READ, ResourceType.TOPIC, topic)
        context.connection.check(topic, index)
        partition = context.cluster.require_partition(topic, index)
        partition.check_leader(context.node.node_id)
    except Refusal as refusal:
        refusal.write_to(answer)
        return answer
    # A log that was not read yet knows no producers.
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
