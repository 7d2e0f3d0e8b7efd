"""DescribeTransactions, version 0 (KIP-664)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of


@handler(DescribeTransactionsRequest, by_partition=True)
async def handle(
    context: RequestContext[DescribeTransactionsRequest],
) -> DescribeTransactionsResponse:
    """Describe the transactions that this node coordinates."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(context, name) for name in context.request.transactional_ids
        ]
    )


def _describe(
    context: RequestContext[DescribeTransactionsRequest], name: str
) -> TransactionState:
    coordinator = coordinator_of(context.cluster)
    rights = context.rights
    denied = rights.denied(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)
    code = (
        denied
        or context.connection.error_for(name)
        or coordinator.refuse(context.node.node_id, name)
    )
    found = coordinator.transactions.get(name)
    if not code and found is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if code or found is None:
        return TransactionState(transactional_id=name, error_code=code)
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(found.partitions):
        # The transaction is described without the topics that are hidden.
        if rights.may(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return TransactionState(
        transactional_id=name,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=list(topics.values()),
    )
