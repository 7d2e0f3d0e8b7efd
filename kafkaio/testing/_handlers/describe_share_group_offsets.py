"""DescribeShareGroupOffsets, versions 0 and 1 (KIP-932, KIP-1226 for the lag)."""

from __future__ import annotations

from collections.abc import Iterable

from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._share import check_enabled
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._share.leaders import share_leaders_of
from kafkaio.testing._share.states import UNINITIALIZED, KeptState, ShareKey


@handler(DescribeShareGroupOffsetsRequest, check_enabled)
async def handle(
    context: RequestContext[DescribeShareGroupOffsetsRequest],
) -> DescribeShareGroupOffsetsResponse:
    """Describe where share groups are, and what is left for them."""
    return DescribeShareGroupOffsetsResponse(
        groups=[_group(context, one) for one in context.request.groups]
    )


def _group(
    context: RequestContext[DescribeShareGroupOffsetsRequest],
    asked: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id, cluster = asked.group_id, context.cluster
    answer = DescribeShareGroupOffsetsResponseGroup(group_id=group_id)
    answer.error_code = context.rights.denied(
        Operation.DESCRIBE, ResourceType.GROUP, group_id
    ) or coordinator_of(cluster).refuse(context.node.node_id, group_id)
    if answer.error_code:
        return answer
    if asked.topics is not None:
        wanted = [(one.topic_name, one.partitions) for one in asked.topics]
    else:
        of_group = share_leaders_of(cluster).states.of_group(group_id)
        known = {topic.topic_id: topic.name for topic in cluster.visible()}
        wanted = sorted(
            (known[topic_id], list(partitions))
            for topic_id, partitions in of_group.items()
            if topic_id in known
        )
    for name, partitions in wanted:
        denied = context.rights.denied(Operation.DESCRIBE, ResourceType.TOPIC, name)
        # Topics that the client may not see are left out, unless it named them.
        if not denied or asked.topics is not None:
            answer.topics.append(_topic(context, group_id, name, partitions, denied))
    return answer


def _topic(
    context: RequestContext[DescribeShareGroupOffsetsRequest],
    group_id: str,
    name: str,
    partitions: Iterable[int],
    denied: int,
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = None if denied else context.cluster.known(name)
    answer = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    answer.topic_id = ZERO_UUID if topic is None else topic.topic_id
    states = share_leaders_of(context.cluster).states
    for index in partitions:
        found = DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=-1, error_code=denied
        )
        answer.partitions.append(found)
        state = states.get(ShareKey(group_id, answer.topic_id, index))
        if topic is not None and state is not None:
            end = topic.partitions[index].high_watermark
            _describe(found, state, end)
    return answer


def _describe(
    found: DescribeShareGroupOffsetsResponsePartition, state: KeptState, end: int
) -> None:
    start = state.image.start
    if start == UNINITIALIZED:
        return
    found.start_offset = start
    found.leader_epoch = state.leader_epoch
    found.lag = end - start - state.image.completed
