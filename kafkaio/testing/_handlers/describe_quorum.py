"""DescribeQuorum, versions 0 to 2 (KIP-595, KIP-836, KIP-853).

Every node is a voter and has all of the metadata. None has a listener for controllers:
the answer names the listener of its clients.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node as Voter,
    ReplicaState,
)
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._handlers._handler import (
    RequestContext,
    handler,
    right,
    with_message,
)
from kafkaio.testing._security.acls import Operation, ResourceType

_METADATA: Final = ("__cluster_metadata", 0)
#: The first versions with the times of a voter (KIP-836), and with its address.
_WITH_TIMES, _WITH_NODES = 1, 2
_LISTENER: Final = "CONTROLLER"


@handler(
    DescribeQuorumRequest,
    right(Operation.DESCRIBE, ResourceType.CLUSTER, explained=True),
    refused=with_message,
)
async def handle(
    context: RequestContext[DescribeQuorumRequest],
) -> DescribeQuorumResponse:
    """Tell who keeps the metadata."""
    version = context.version
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in context.request.topics
        for partition in topic.partitions
    ]
    response = DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    _partition(
                        context.cluster, topic.topic_name, one.partition_index, version
                    )
                    for one in topic.partitions
                ],
            )
            for topic in context.request.topics
        ]
    )
    if _METADATA in asked and version >= _WITH_NODES:
        response.nodes = [
            _voter(context, peer) for peer in context.node.broker.nodes.values()
        ]
    return response


def _partition(
    cluster: EmbeddedCluster, topic: str, index: int, version: int
) -> DescribeQuorumResponsePartitionData:
    if (topic, index) != _METADATA:
        return DescribeQuorumResponsePartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition."
            if version >= _WITH_NODES
            else "",
        )
    # All nodes have the metadata at once, so none is behind.
    now = cluster.clock.wall_ms() if version >= _WITH_TIMES else -1
    return DescribeQuorumResponsePartitionData(
        partition_index=index,
        leader_id=cluster.controller_id,
        leader_epoch=1,
        high_watermark=cluster.metadata_offset,
        current_voters=[
            ReplicaState(
                replica_id=node_id,
                log_end_offset=cluster.metadata_offset,
                last_fetch_timestamp=now,
                last_caught_up_timestamp=now,
            )
            for node_id in sorted(cluster.node_ids)
        ],
    )


def _voter(context: RequestContext[DescribeQuorumRequest], peer: BrokerNode) -> Voter:
    host, port = peer.address(context.connection)
    return Voter(
        node_id=peer.node_id,
        listeners=[Listener(name=_LISTENER, host=host, port=port)],
    )
