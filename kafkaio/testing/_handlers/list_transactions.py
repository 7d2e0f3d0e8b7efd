"""ListTransactions, versions 0 to 2 (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.regex import InvalidPatternError, compile_re2
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of
from kafkaio.testing._transactions.transaction import TransactionStatus


@handler(ListTransactionsRequest)
async def handle(
    context: RequestContext[ListTransactionsRequest],
) -> ListTransactionsResponse:
    """List the transactions that this node coordinates; an empty filter has all."""
    request = context.request
    rights = context.rights
    # A client may know states of a newer Kafka: they are reported, and match nothing.
    known = {one.label for one in TransactionStatus}
    found = coordinator_of(context.cluster).led_by(context.node.node_id)
    try:
        pattern = compile_re2(request.transactional_id_pattern or ".*")
    except InvalidPatternError:
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION) from None
    states, ids = set(request.state_filters), set(request.producer_id_filters)
    now_ms, longer_than = context.node.clock.wall_ms(), request.duration_filter
    return ListTransactionsResponse(
        unknown_state_filters=[
            one for one in request.state_filters if one not in known
        ],
        transaction_states=[
            TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.label,
            )
            for one in found
            if (not states or one.state.label in states)
            and (not ids or one.producer_id in ids)
            and (longer_than < 0 or now_ms - one.started_ms > longer_than)
            and pattern.fullmatch(one.transactional_id)
            and rights.may(
                Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id
            )
        ],
    )
