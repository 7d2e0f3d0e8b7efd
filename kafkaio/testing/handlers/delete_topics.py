"""DeleteTopics, versions 1 to 6 (KIP-516 for ids)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node

_FIRST_WITH_IDS: Final = 6


async def handle(
    node: Node,
    header: RequestHeader,
    request: DeleteTopicsRequest,
    connection: ServerConnection,
) -> DeleteTopicsResponse:
    """Delete topics, by name or by id."""
    asked = request.topics
    if header.request_api_version < _FIRST_WITH_IDS:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[_one(node, topic, connection) for topic in asked]
    )


def _one(
    node: Node, asked: DeleteTopicState, connection: ServerConnection
) -> DeletableTopicResult:
    cluster = node.cluster
    if asked.name is None:
        topic = cluster.known_by_id(asked.topic_id)
        absent = ErrorCode.UNKNOWN_TOPIC_ID
        if not asked.topic_id.int:
            absent = ErrorCode.INVALID_REQUEST
    else:
        topic = cluster.known(asked.name)
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return DeletableTopicResult(
            name=asked.name,
            topic_id=asked.topic_id,
            error_code=absent,
            error_message=f"there is no topic {asked.name or asked.topic_id}",
        )
    code = connection.error_for(topic.name)
    if code is not None:
        return DeletableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_code=code,
            error_message=code.name,
        )
    cluster.delete_topic(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
