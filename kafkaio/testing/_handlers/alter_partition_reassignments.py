"""AlterPartitionReassignments, versions 0 and 1 (KIP-455, KIP-860).

Replicas share one log, so that a move takes no time: it has ended when the answer is
sent, and there is never one to cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(
    AlterPartitionReassignmentsRequest,
    right(Operation.ALTER, ResourceType.CLUSTER),
    by_partition=True,
)
async def handle(
    context: RequestContext[AlterPartitionReassignmentsRequest],
) -> AlterPartitionReassignmentsResponse:
    """Move the replicas of partitions."""
    may_change = context.version == 0 or context.request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _one(context.node, topic.name, asked, may_change=may_change)
                    for asked in topic.partitions
                ],
            )
            for topic in context.request.topics
        ],
    )


def _one(
    node: BrokerNode, name: str, asked: ReassignablePartition, *, may_change: bool
) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_message=None
    )
    try:
        partition = _partition(node, name, asked.partition_index)
        replicas = _checked(node, partition, asked.replicas, may_change=may_change)
        node.cluster.set_replicas(partition, replicas)
    except Refusal as refusal:
        refusal.write_to(result)
    return result


def _partition(node: BrokerNode, name: str, number: int) -> EmbeddedPartition:
    topic = node.cluster.topics.get(name)
    if topic is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find a topic named {name}.",
        )
    if not 0 <= number < len(topic.partitions):
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {name}:{number}.",
        )
    return topic.partitions[number]


def _checked(
    node: BrokerNode,
    partition: EmbeddedPartition,
    replicas: Sequence[int] | None,
    *,
    may_change: bool,
) -> Sequence[int]:
    # Null cancels a move, of which there is never one.
    if replicas is None:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    problem = _problem(node, replicas)
    if problem:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes {problem}.",
        )
    before, after = len(partition.replicas), len(replicas)
    if before != after and not may_change:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {before} to {after}",
        )
    return replicas


def _problem(node: BrokerNode, replicas: Sequence[int]) -> str | None:
    if not replicas:
        return "an empty replica list"
    # In the order of the ids: of several problems Kafka names the one of the lowest.
    for node_id in sorted(replicas):
        if node_id not in node.broker.nodes:
            return f"broker {node_id}, but no such broker is registered"
        if replicas.count(node_id) > 1:
            return f"the broker {node_id} more than once"
    return None
