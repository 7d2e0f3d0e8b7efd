"""EndTxn, versions 0 to 5 (KIP-98, KIP-890): answered before the markers are written.

The version says which protocol the producer speaks, whatever the cluster's level.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
)
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of
from kafkaio.testing._transactions.transaction import BUMPING

#: Clients before it know no PRODUCER_FENCED (KIP-588).
_FIRST_WITH_FENCED: Final = 2
#: From here on the response has the next epoch (KIP-890).
_FIRST_WITH_BUMP: Final = 5


@handler(
    EndTxnRequest,
    right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    coordinated(coordinator_of, "transactional_id"),
)
async def handle(context: RequestContext[EndTxnRequest]) -> EndTxnResponse:
    """Commit or abort the open transaction."""
    request = context.request
    bumps = context.version >= _FIRST_WITH_BUMP
    coordinator = coordinator_of(context.cluster)
    code, found = coordinator.end(
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        BUMPING if bumps else 0,
        commit=request.committed,
    )
    if not code:
        # The decision is in the log; the markers come later.
        await coordinator.written(request.transactional_id)
    return EndTxnResponse(
        error_code=fencing_code(code, context.version, _FIRST_WITH_FENCED),
        producer_id=found[0] if bumps else -1,
        producer_epoch=found[1] if bumps else -1,
    )
