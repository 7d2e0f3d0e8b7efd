"""DescribeLogDirs, versions 1 to 5 (KIP-113, KIP-827): one directory for each node.

Replicas share one log, so each of them reports the size of the same log.
"""

from __future__ import annotations

from kafkaio.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(
    DescribeLogDirsRequest,
    right(Operation.DESCRIBE, ResourceType.CLUSTER),
)
async def handle(
    context: RequestContext[DescribeLogDirsRequest],
) -> DescribeLogDirsResponse:
    """Report the sizes of the node's partitions, in bytes."""
    topics = context.cluster.visible()
    wanted: dict[str, set[int]] | None = None
    if context.request.topics is not None:
        wanted = {
            asked.topic: set(asked.partitions) for asked in context.request.topics
        }
        topics = [topic for topic in topics if topic.name in wanted]
    described = [
        _topic(context.node, topic, None if wanted is None else wanted[topic.name])
        for topic in topics
    ]
    result = DescribeLogDirsResult(
        log_dir=context.node.log_dir,
        topics=[topic for topic in described if topic.partitions],
        # Kafka's value for a size that it does not know.
        total_bytes=-1,
        usable_bytes=-1,
    )
    return DescribeLogDirsResponse(results=[result])


def _topic(
    node: BrokerNode, topic: Topic, wanted: set[int] | None
) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=topic.name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.log.size_bytes,
            )
            for partition in topic.partitions
            if node.node_id in partition.replicas
            and (wanted is None or partition.index in wanted)
        ],
    )
