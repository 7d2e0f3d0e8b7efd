"""AddOffsetsToTxn, versions 0 to 4 (KIP-98)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of

_FIRST_WITH_FENCED: Final = 2


async def handle(
    node: Node,
    header: RequestHeader,
    request: AddOffsetsToTxnRequest,
    connection: ServerConnection,
) -> AddOffsetsToTxnResponse:
    """Add the partition of a group's offsets to the transaction."""
    coordinator = coordinator_of(node.cluster)
    rights = rights_of(node, connection)
    name = request.transactional_id
    code = (
        rights.denied(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        or rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
        or coordinator.refuse(node.node_id, name)
    )
    if not code:
        partition = node.cluster.offsets_partition(request.group_id)
        code = coordinator.add(
            request.transactional_id,
            (request.producer_id, request.producer_epoch),
            [(partition.topic, partition.index)],
            0,
        )
    if not code:
        await coordinator.written(request.transactional_id)
    return AddOffsetsToTxnResponse(
        error_code=fencing_code(code, header, _FIRST_WITH_FENCED)
    )
