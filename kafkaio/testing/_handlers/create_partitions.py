"""CreatePartitions, versions 0 to 3 (KIP-195)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._handlers.create_topics import check_replicas
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: CreatePartitionsRequest,
    connection: ServerConnection,
) -> CreatePartitionsResponse:
    """Add partitions to topics."""
    del header
    return CreatePartitionsResponse(
        results=[
            _one(node, asked, connection, validate_only=request.validate_only)
            for asked in request.topics
        ]
    )


def _one(
    node: Node,
    asked: CreatePartitionsTopic,
    connection: ServerConnection,
    *,
    validate_only: bool,
) -> CreatePartitionsTopicResult:
    result = CreatePartitionsTopicResult(name=asked.name)
    denied = rights_of(node, connection).denied(
        Operation.ALTER, ResourceType.TOPIC, asked.name
    )
    if denied:
        result.error_code, result.error_message = denied, None
        return result
    try:
        connection.check(asked.name)
        topic = node.cluster.require_topic(asked.name)
        assignment = _assignment(node, asked, topic)
        if not validate_only:
            node.cluster.add_partitions(topic, assignment)
    except Refusal as refusal:
        refusal.write_to(result)
    return result


def _assignment(
    node: Node, asked: CreatePartitionsTopic, topic: Topic
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
    if len(asked.assignments) != more:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(asked.assignments)} assignments for {more} new partitions",
        )
    for one in asked.assignments:
        check_replicas(node, one.broker_ids, len(topic.partitions[0].replicas))
    return [list(one.broker_ids) for one in asked.assignments]
