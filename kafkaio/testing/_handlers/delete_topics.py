"""DeleteTopics, versions 1 to 6 (KIP-516 for ids)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType

#: KIP-516.
_FIRST_WITH_IDS: Final = 6


@handler(DeleteTopicsRequest, by_partition=True)
async def handle(context: RequestContext[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete topics, by name or by id."""
    asked = context.request.topics
    if context.version < _FIRST_WITH_IDS:
        asked = [DeleteTopicState(name=name) for name in context.request.topic_names]
    return DeleteTopicsResponse(responses=[_one(context, topic) for topic in asked])


def _one(
    context: RequestContext[DeleteTopicsRequest], asked: DeleteTopicState
) -> DeletableTopicResult:
    cluster = context.cluster
    if asked.name is None:
        topic = cluster.known_by_id(asked.topic_id)
        absent = ErrorCode.UNKNOWN_TOPIC_ID
        if not asked.topic_id.int:
            absent = ErrorCode.INVALID_REQUEST
    else:
        topic = cluster.known(asked.name)
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # Before the topic is said to be unknown: a client without the right must not learn
    # whether it exists.
    denied = _denied(context.rights, asked, topic)
    if denied is not None:
        return denied
    if topic is None:
        return DeletableTopicResult(
            name=asked.name,
            topic_id=asked.topic_id,
            error_code=absent,
            error_message=f"there is no topic {asked.name or asked.topic_id}",
        )
    code = context.connection.error_for(topic.name)
    if code is not None:
        return DeletableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_code=code,
            error_message=code.name,
        )
    cluster.delete_topic(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _denied(
    rights: Rights, asked: DeleteTopicState, topic: Topic | None
) -> DeletableTopicResult | None:
    """The answer for a topic that the client may not delete; None if it may.

    A client that names a topic has to have the right to describe it, too.
    """
    if rights.may(Operation.DELETE, ResourceType.CLUSTER):
        return None
    name = asked.name if topic is None else topic.name
    if name is None:
        return None
    is_seen = rights.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
    if is_seen or asked.name is None:
        is_allowed = rights.may(Operation.DELETE, ResourceType.TOPIC, name)
        if topic is None or is_allowed:
            return None
    return DeletableTopicResult(
        name=name if is_seen else asked.name,
        topic_id=asked.topic_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="Topic authorization failed.",
    )
