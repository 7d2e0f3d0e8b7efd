"""InitProducerId, versions 0 to 5 (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.handlers._transactions import fencing_code
from kafkaio.testing.transactions.coordinator import coordinator_of

_FIRST_WITH_FENCED: Final = 4


async def handle(
    node: Node,
    header: RequestHeader,
    request: InitProducerIdRequest,
    connection: ServerConnection,
) -> InitProducerIdResponse:
    """Hand out a producer id, or the next epoch of a transactional id."""
    del connection
    name = request.transactional_id
    names_one_of_both = (request.producer_id < 0) != (request.producer_epoch < 0)
    if name == "" or names_one_of_both:
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1
        )
    if name is None:
        return InitProducerIdResponse(
            producer_id=node.cluster.new_producer_id(), producer_epoch=0
        )
    coordinator = coordinator_of(node.cluster)
    code, found = coordinator.refuse(node.node_id, name), (-1, -1)
    if not code:
        expected = None
        if request.producer_id >= 0:
            expected = (request.producer_id, request.producer_epoch)
        timeout = request.transaction_timeout_ms
        code, found = coordinator.initialise(name, timeout, expected)
    if not code:
        await coordinator.written(name)
    return InitProducerIdResponse(
        error_code=fencing_code(code, header, _FIRST_WITH_FENCED),
        producer_id=found[0],
        producer_epoch=found[1],
    )
