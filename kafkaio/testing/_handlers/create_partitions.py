"""CreatePartitions, versions 0 to 3 (KIP-195)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers.create_topics import check_replicas
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(CreatePartitionsRequest, by_partition=True)
async def handle(
    context: RequestContext[CreatePartitionsRequest],
) -> CreatePartitionsResponse:
    """Add partitions to topics."""
    return CreatePartitionsResponse(
        results=[
            _one(context, asked, validate_only=context.request.validate_only)
            for asked in context.request.topics
        ]
    )


def _one(
    context: RequestContext[CreatePartitionsRequest],
    asked: CreatePartitionsTopic,
    *,
    validate_only: bool,
) -> CreatePartitionsTopicResult:
    result = CreatePartitionsTopicResult(name=asked.name)
    denied = context.rights.denied(Operation.ALTER, ResourceType.TOPIC, asked.name)
    if denied:
        result.error_code, result.error_message = denied, None
        return result
    try:
        context.connection.check(asked.name)
        topic = context.cluster.require_topic(asked.name)
        assignment = _assignment(context.node, asked, topic)
        if not validate_only:
            context.cluster.add_partitions(topic, assignment)
    except Refusal as refusal:
        refusal.write_to(result)
    return result


def _assignment(
    node: BrokerNode, asked: CreatePartitionsTopic, topic: Topic
) -> list[list[int]] | int:
    more = asked.count - len(topic.partitions)
    if more <= 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(topic.partitions)} partitions, which is"
            f" not lower than the requested {asked.count}.",
        )
    if not asked.assignments:
        return more
    # Replicas are named for the new partitions only.
    if len(asked.assignments) != more:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(asked.assignments)} assignments for {more} new partitions",
        )
    for one in asked.assignments:
        check_replicas(node, one.broker_ids, len(topic.partitions[0].replicas))
    return [list(one.broker_ids) for one in asked.assignments]
