"""DescribeTopicPartitions, version 0 (KIP-966)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import Rights
from kafkaio.testing._security.acls import Operation, ResourceType

#: Kafka's default of max.request.partition.size.limit.
_LARGEST_PAGE: Final = 2000


@handler(DescribeTopicPartitionsRequest)
async def handle(
    context: RequestContext[DescribeTopicPartitionsRequest],
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, one page per request."""
    request = context.request
    rights = context.rights
    cursor = request.cursor
    # Sorted, so that a cursor says what was answered before.
    names = sorted({topic.name for topic in request.topics})
    is_wrong = cursor is not None and (
        cursor.partition_index < 0 or (names and cursor.topic_name not in names)
    )
    if is_wrong:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.INVALID_REQUEST, name=asked.name
                )
                for asked in request.topics
            ]
        )
    is_for_all = not names
    if is_for_all:
        names = [topic.name for topic in context.cluster.visible()]
    first = 0
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        if names and names[0] == cursor.topic_name:
            first = cursor.partition_index
    described, hidden = _allowed(names, rights)
    # A page of no partition would never end.
    left = max(1, min(request.response_partition_limit, _LARGEST_PAGE))
    page = _page(context, described, first, left)
    # A client that asks for all topics does not learn of those that it may not see.
    if not is_for_all:
        page.topics += hidden
    return page


def _allowed(
    names: list[str], rights: Rights
) -> tuple[list[str], list[DescribeTopicPartitionsResponseTopic]]:
    """The topics that the client may see, and the answers for the others."""
    seen, hidden = [], []
    for name in names:
        code = rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name)
        if code:
            hidden.append(
                DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
            )
        else:
            seen.append(name)
    return seen, hidden


def _page(
    context: RequestContext[DescribeTopicPartitionsRequest],
    names: list[str],
    first: int,
    left: int,
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left <= 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=0
            )
            break
        described, rest = _topic(context.node, name, first, left)
        described.topic_authorized_operations = context.rights.operations(
            ResourceType.TOPIC, name
        )
        first = 0
        left -= len(described.partitions)
        response.topics.append(described)
        if rest is not None:
            response.next_cursor = rest
            break
    return response


def _topic(
    node: BrokerNode, name: str, first: int, limit: int
) -> tuple[
    DescribeTopicPartitionsResponseTopic, DescribeTopicPartitionsResponseCursor | None
]:
    topic = node.cluster.known(name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            node.cluster.check_name(name)
        except Refusal as refusal:
            code = refusal.code
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name), None
    page = topic.partitions[first : first + limit]
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(node, partition) for partition in page],
    )
    if first + limit >= len(topic.partitions):
        return described, None
    return described, DescribeTopicPartitionsResponseCursor(
        topic_name=name, partition_index=first + limit
    )


def _partition(
    node: BrokerNode, partition: EmbeddedPartition
) -> DescribeTopicPartitionsResponsePartition:
    leader, epoch = partition.known_leader
    live = node.cluster.live
    return DescribeTopicPartitionsResponsePartition(
        error_code=(
            ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE
        ),
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[r for r in partition.replicas if r not in live],
    )
