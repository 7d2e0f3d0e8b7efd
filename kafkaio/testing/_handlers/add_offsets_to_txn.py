"""AddOffsetsToTxn, versions 0 to 4 (KIP-98)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaio.testing._handlers._handler import (
    RequestContext,
    coordinated,
    handler,
    right,
)
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of

#: Clients before it know no PRODUCER_FENCED (KIP-588).
_FIRST_WITH_FENCED: Final = 2


@handler(
    AddOffsetsToTxnRequest,
    right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    right(Operation.READ, ResourceType.GROUP, "group_id"),
    coordinated(coordinator_of, "transactional_id"),
)
async def handle(
    context: RequestContext[AddOffsetsToTxnRequest],
) -> AddOffsetsToTxnResponse:
    """Add the partition of a group's offsets to the transaction."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    # The offsets are records of this partition, so it gets a marker of the transaction.
    partition = context.cluster.offsets_partition(request.group_id)
    code = coordinator.add(
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        [(partition.topic, partition.index)],
        0,
    )
    if not code:
        await coordinator.written(request.transactional_id)
    return AddOffsetsToTxnResponse(
        error_code=fencing_code(code, context.version, _FIRST_WITH_FENCED)
    )
