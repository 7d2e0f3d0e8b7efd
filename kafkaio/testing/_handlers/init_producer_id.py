"""InitProducerId, versions 0 to 5 (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of

_FIRST_WITH_FENCED: Final = 4
#: Releases in which a right to write to a topic is not enough (before KIP-679).
_NEED_IDEMPOTENT_WRITE: Final = {"2.1"}


@handler(InitProducerIdRequest)
async def handle(
    context: RequestContext[InitProducerIdRequest],
) -> InitProducerIdResponse:
    """Hand out a producer id, or the next epoch of a transactional id."""
    request = context.request
    name = request.transactional_id
    denied = _denied(context, name)
    if denied:
        return InitProducerIdResponse(error_code=denied, producer_epoch=-1)
    names_one_of_both = (request.producer_id < 0) != (request.producer_epoch < 0)
    if name == "" or names_one_of_both:
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1
        )
    if name is None:
        return InitProducerIdResponse(
            producer_id=context.cluster.new_producer_id(), producer_epoch=0
        )
    coordinator = coordinator_of(context.cluster)
    code, found = coordinator.refuse(context.node.node_id, name), (-1, -1)
    if not code:
        expected = None
        if request.producer_id >= 0:
            expected = (request.producer_id, request.producer_epoch)
        timeout = request.transaction_timeout_ms
        code, found = coordinator.initialise(name, timeout, expected)
    if not code:
        await coordinator.written(name)
    return InitProducerIdResponse(
        error_code=fencing_code(code, context.header, _FIRST_WITH_FENCED),
        producer_id=found[0],
        producer_epoch=found[1],
    )


def _denied(
    context: RequestContext[InitProducerIdRequest], name: str | None
) -> ErrorCode:
    """The error for a client that may not have an id; NONE if it may."""
    rights = context.rights
    if name is not None:
        return rights.denied(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    is_enough = context.node.broker.release not in _NEED_IDEMPOTENT_WRITE
    if is_enough and rights.may_any(Operation.WRITE, ResourceType.TOPIC):
        return ErrorCode.NONE
    return rights.denied(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
