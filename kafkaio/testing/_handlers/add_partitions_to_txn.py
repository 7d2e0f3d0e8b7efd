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
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of
from kafkaio.testing._transactions.transaction import BUMPING, TopicPartition

#: Clients before it know no PRODUCER_FENCED (KIP-588).
_FIRST_WITH_FENCED: Final = 2
#: From here on leaders send it, to verify their producers (KIP-890).
_FIRST_OF_BROKERS: Final = 4
_FIRST_WITH_BUMP: Final = 5
_is_broker = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)


def _check_right(context: RequestContext[AddPartitionsToTxnRequest]) -> None:
    """Check that the client is a broker, in the versions that are for brokers."""
    if context.version >= _FIRST_OF_BROKERS:
        _is_broker(context)


@handler(AddPartitionsToTxnRequest, _check_right, by_partition=True)
async def handle(
    context: RequestContext[AddPartitionsToTxnRequest],
) -> AddPartitionsToTxnResponse:
    """Add partitions: all of a transaction's or, if one is refused, none."""
    request = context.request
    if context.version >= _FIRST_OF_BROKERS:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id,
                    topic_results=_results(context, one),
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
    results = _results(context, asked)
    # The answer says that the partitions are in the log of transactions.
    await coordinator_of(context.cluster).written(asked.transactional_id)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _results(
    context: RequestContext[AddPartitionsToTxnRequest],
    asked: AddPartitionsToTxnTransaction,
) -> list[AddPartitionsToTxnTopicResult]:
    places = _places(asked.topics)
    codes: dict[TopicPartition, ErrorCode] = {}
    denied = _denied(context, asked)
    for place in places:
        code = denied.get(place[0]) or context.connection.error_for(*place)
        if code is None and context.cluster.partition(*place) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code is not None:
            codes[place] = code
    if codes:
        # All or nothing: the others are told that they were not tried.
        refused = dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes = refused | codes
    else:
        codes = _ask(context, asked, places)
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=fencing_code(
                        codes[topic.name, index], context.version, _FIRST_WITH_FENCED
                    ),
                )
                for index in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


def _denied(
    context: RequestContext[AddPartitionsToTxnRequest],
    asked: AddPartitionsToTxnTransaction,
) -> dict[str, ErrorCode]:
    """The errors for a client that may not write, by topic.

    Brokers, which the later versions are for, write in the name of their clients.
    """
    if context.version >= _FIRST_OF_BROKERS:
        return {}
    rights = context.rights
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
    context: RequestContext[AddPartitionsToTxnRequest],
    asked: AddPartitionsToTxnTransaction,
    places: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    coordinator = coordinator_of(context.cluster)
    name = asked.transactional_id
    producer = (asked.producer_id, asked.producer_epoch)
    code = coordinator.refuse(context.node.node_id, name)
    if not code and asked.verify_only:
        return {place: coordinator.verify(name, producer, place) for place in places}
    if not code:
        bumps = context.version >= _FIRST_WITH_BUMP
        code = coordinator.add(name, producer, places, BUMPING if bumps else 0)
    return dict.fromkeys(places, code)
