"""Metadata, versions 0 to 13 (KIP-516 for ids)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.testing._broker.cluster import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topic
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType

#: Kafka's id for a topic that the answer does not identify.
_NO_ID: Final = UUID(int=0)
#: Errors with which the operations on a topic are not answered.
_WITHOUT_OPERATIONS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
#: Older clients cannot say whether the topic is to be created.
_FIRST_WITH_AUTO_CREATE: Final = 4
#: Releases that answer LEADER_NOT_AVAILABLE for a topic that they are creating.
_LEADER_NOT_AVAILABLE: Final = {"2.1"}


@handler(MetadataRequest, by_partition=True)
async def handle(context: RequestContext[MetadataRequest]) -> MetadataResponse:
    """Return the nodes that are up, and the leaders of the topics asked for."""
    request, node = context.request, context.node
    cluster, rights = context.cluster, context.rights
    response = MetadataResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        cluster_authorized_operations=rights.cluster_operations(
            is_asked=request.include_cluster_authorized_operations
        ),
    )
    for node_id in sorted(cluster.live):
        peer = node.broker.nodes[node_id]
        host, port = peer.address(context.connection)
        response.brokers.append(
            MetadataResponseBroker(
                node_id=node_id, host=host, port=port, rack=peer.rack
            )
        )
    version = context.version
    # Version 0 has no null: an empty list asks for all topics.
    if request.topics is None or (version == 0 and not request.topics):
        response.topics = [
            _refused(context, topic) or describe(node, topic)
            for topic in cluster.visible()
            if rights.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
        return _with_operations(context, response)
    may_create = node.broker.auto_create_topics and (
        version < _FIRST_WITH_AUTO_CREATE or request.allow_auto_topic_creation
    )
    # A topic that is asked for twice is answered once.
    asked_once = {(asked.name, asked.topic_id): asked for asked in request.topics}
    response.topics = [
        _one(context, asked, may_create=may_create) for asked in asked_once.values()
    ]
    return _with_operations(context, response)


def _with_operations(
    context: RequestContext[MetadataRequest], response: MetadataResponse
) -> MetadataResponse:
    """Set the authorized operations of topics, if the client asked for them."""
    for topic in response.topics:
        if topic.error_code in _WITHOUT_OPERATIONS:
            continue
        topic.topic_authorized_operations = context.rights.operations(
            ResourceType.TOPIC,
            topic.name or "",
            is_asked=context.request.include_topic_authorized_operations,
        )
    return response


def _refused(
    context: RequestContext[MetadataRequest], topic: Topic
) -> MetadataResponseTopic | None:
    """The answer for a topic that a fault applies to; None without a fault."""
    code = context.connection.error_for(topic.name)
    if code is None:
        return None
    return MetadataResponseTopic(
        error_code=code, name=topic.name, topic_id=topic.topic_id
    )


def describe(node: BrokerNode, topic: Topic) -> MetadataResponseTopic:
    """Describe one topic as this node knows it."""
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(node, partition) for partition in topic.partitions],
    )


def _partition(
    node: BrokerNode, partition: EmbeddedPartition
) -> MetadataResponsePartition:
    live = node.cluster.live
    leader, epoch = partition.known_leader
    return MetadataResponsePartition(
        error_code=(
            ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE
        ),
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[node for node in partition.replicas if node not in live],
    )


def _one(
    context: RequestContext[MetadataRequest],
    asked: MetadataRequestTopic,
    *,
    may_create: bool,
) -> MetadataResponseTopic:
    rights, node = context.rights, context.node
    if asked.name is None:
        topic = context.cluster.known_by_id(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None,
                topic_id=asked.topic_id,
            )
        return (
            _denied(rights, topic.name, topic.topic_id)
            or _refused(context, topic)
            or describe(node, topic)
        )
    denied = _denied(rights, asked.name, None)
    if denied is not None:
        return denied
    topic = context.cluster.known(asked.name)
    if topic is not None:
        return _refused(context, topic) or describe(node, topic)
    if may_create:
        code = rights.denied_creation(asked.name) or _create(node, asked.name)
    else:
        code = _check(node, asked.name)
    return MetadataResponseTopic(error_code=code, name=asked.name, topic_id=_NO_ID)


def _denied(
    rights: Rights, name: str, topic_id: UUID | None
) -> MetadataResponseTopic | None:
    """The answer for a topic that the client may not see; None if it may.

    It has nothing that the client did not know: not even whether a name exists.
    """
    code = rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name)
    if not code:
        return None
    if topic_id is not None:
        return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id)
    return MetadataResponseTopic(error_code=code, name=name, topic_id=_NO_ID)


def _check(node: BrokerNode, name: str) -> ErrorCode:
    try:
        node.cluster.check_name(name)
    except Refusal as refusal:
        return refusal.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _create(node: BrokerNode, name: str) -> ErrorCode:
    """Create a topic; return the error that, as in Kafka, this answer still has."""
    cluster = node.cluster
    not_yet = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node.broker.release in _LEADER_NOT_AVAILABLE:
        not_yet = ErrorCode.LEADER_NOT_AVAILABLE
    # It was created before, and nodes do not know of it yet.
    if name in cluster.topics:
        return not_yet
    if name == OFFSETS_TOPIC:
        cluster.offsets_partition("")
        return not_yet
    if name == TRANSACTIONS_TOPIC:
        cluster.transactions_partition("")
        return not_yet
    factor = min(node.broker.default_replication_factor, len(cluster.live))
    try:
        cluster.create_topic(name, node.broker.default_partitions, factor)
    except Refusal as refusal:
        return refusal.code
    return not_yet
