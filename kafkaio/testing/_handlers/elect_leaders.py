"""ElectLeaders, versions 0 to 2 (KIP-183, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kafkaio.testing._broker.cluster import Topic
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType

_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_TEXTS: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "Eligible topic partition leaders are not available."
    ),
}


@handler(
    ElectLeadersRequest,
    right(Operation.ALTER, ResourceType.CLUSTER),
    by_partition=True,
)
async def handle(context: RequestContext[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Elect the preferred leaders of partitions, or any replicas that are up."""
    request = context.request
    kind = request.election_type
    if request.topic_partitions is None:
        return _all(context.node, kind)
    is_known = kind in {_PREFERRED, _UNCLEAN} or not request.topic_partitions
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    _one(context.node, kind, asked.topic, number)
                    for number in asked.partitions
                ],
            )
            for asked in request.topic_partitions
        ],
    )


def _all(node: BrokerNode, kind: int) -> ElectLeadersResponse:
    """Elect leaders of all partitions; those that need none are not answered for."""
    if kind not in {_PREFERRED, _UNCLEAN}:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.name, partition_result=list(_needed(node, kind, topic))
            )
            for topic in node.cluster.visible()
        ]
    )


def _needed(node: BrokerNode, kind: int, topic: Topic) -> Iterable[PartitionResult]:
    for partition in topic.partitions:
        code = _elect(node, kind, partition)
        # A client that names no partitions wants to know what has changed.
        if code != ErrorCode.ELECTION_NOT_NEEDED:
            yield _result(partition.index, code)


def _one(node: BrokerNode, kind: int, name: str, number: int) -> PartitionResult:
    if kind not in {_PREFERRED, _UNCLEAN}:
        text = f"Unknown election type {kind}"
        return _result(number, ErrorCode.INVALID_REQUEST, text)
    topic = node.cluster.topics.get(name)
    if topic is None:
        text = f"No such topic as {name}"
        return _result(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if not 0 <= number < len(topic.partitions):
        text = f"No such partition as {name}-{number}"
        return _result(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return _result(number, _elect(node, kind, topic.partitions[number]))


def _elect(node: BrokerNode, kind: int, partition: EmbeddedPartition) -> ErrorCode:
    cluster = node.cluster
    if kind == _UNCLEAN:
        if partition.leader != NO_LEADER:
            return ErrorCode.ELECTION_NOT_NEEDED
        if cluster.elect_unclean(partition):
            return ErrorCode.NONE
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ErrorCode.ELECTION_NOT_NEEDED
    # A preferred election never loses records.
    if preferred not in partition.isr or preferred not in cluster.live:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.move_leader(partition, preferred)
    return ErrorCode.NONE


def _result(number: int, code: ErrorCode, text: str | None = None) -> PartitionResult:
    return PartitionResult(
        partition_id=number, error_code=code, error_message=text or _TEXTS.get(code)
    )
