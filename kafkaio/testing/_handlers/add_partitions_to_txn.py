"""AddPartitionsToTxn, versions 0 to 5 (KIP-98, KIP-890).

Since version 4 a request is from another broker, for several transactions at once; it
adds partitions, or only verifies that they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of
from kafkaio.testing._transactions.transaction import BUMPING, TopicPartition

_FIRST_WITH_FENCED: Final = 2
_FIRST_OF_BROKERS: Final = 4
_FIRST_WITH_BUMP: Final = 5


async def handle(
    node: Node,
    header: RequestHeader,
    request: AddPartitionsToTxnRequest,
    connection: ServerConnection,
) -> AddPartitionsToTxnResponse:
    """Add partitions: all of a transaction's or, if one is refused, none."""
    version = header.request_api_version
    if version >= _FIRST_OF_BROKERS:
        denied = rights_of(node, connection).denied(
            Operation.CLUSTER_ACTION, ResourceType.CLUSTER
        )
        if denied:
            return AddPartitionsToTxnResponse(error_code=denied)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id,
                    topic_results=_results(node, header, one, connection),
                )
                for one in request.transactions
            ]
        )
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    results = _results(node, header, asked, connection)
    await coordinator_of(node.cluster).written(asked.transactional_id)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _results(
    node: Node,
    header: RequestHeader,
    asked: AddPartitionsToTxnTransaction,
    connection: ServerConnection,
) -> list[AddPartitionsToTxnTopicResult]:
    places = _places(asked.topics)
    codes: dict[TopicPartition, ErrorCode] = {}
    denied = _denied(node, header, asked, connection)
    for place in places:
        code = denied.get(place[0]) or connection.error_for(*place)
        if code is None and node.cluster.partition(*place) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code is not None:
            codes[place] = code
    if codes:
        refused = dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes = refused | codes
    else:
        codes = _ask(node, header, asked, places)
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=fencing_code(
                        codes[topic.name, index], header, _FIRST_WITH_FENCED
                    ),
                )
                for index in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


def _denied(
    node: Node,
    header: RequestHeader,
    asked: AddPartitionsToTxnTransaction,
    connection: ServerConnection,
) -> dict[str, ErrorCode]:
    """The errors for a client that may not write, by topic.

    Brokers, which the later versions are for, write in the name of their clients.
    """
    if header.request_api_version >= _FIRST_OF_BROKERS:
        return {}
    rights = rights_of(node, connection)
    code = rights.denied(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id
    )
    return {
        topic.name: code
        or rights.denied(Operation.WRITE, ResourceType.TOPIC, topic.name)
        for topic in asked.topics
    }


def _places(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _ask(
    node: Node,
    header: RequestHeader,
    asked: AddPartitionsToTxnTransaction,
    places: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    coordinator = coordinator_of(node.cluster)
    name = asked.transactional_id
    producer = (asked.producer_id, asked.producer_epoch)
    code = coordinator.refuse(node.node_id, name)
    if not code and asked.verify_only:
        return {place: coordinator.verify(name, producer, place) for place in places}
    if not code:
        bumps = header.request_api_version >= _FIRST_WITH_BUMP
        code = coordinator.add(name, producer, places, BUMPING if bumps else 0)
    return dict.fromkeys(places, code)
