"""InitProducerId, versions 0 to 5 (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import (
    RequestContext,
    check_coordinator,
    handler,
)
from kafkaio.testing._handlers._transactions import fencing_code
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._transactions.coordinator import coordinator_of

#: Clients before it know no PRODUCER_FENCED (KIP-588).
_FIRST_WITH_FENCED: Final = 4
#: Releases in which a right to write to a topic is not enough (before KIP-679).
_NEED_IDEMPOTENT_WRITE: Final = {"2.1"}


def _check_right(context: RequestContext[InitProducerIdRequest]) -> None:
    """Check that the client may have a producer id, or use the transactional id."""
    rights, name = context.rights, context.request.transactional_id
    if name is not None:
        code = rights.denied(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    elif context.node.broker.release not in _NEED_IDEMPOTENT_WRITE and rights.may_any(
        Operation.WRITE, ResourceType.TOPIC
    ):
        return
    else:
        code = rights.denied(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
    if code:
        raise Refusal(code)


def _refused(
    context: RequestContext[InitProducerIdRequest], refusal: Refusal
) -> InitProducerIdResponse:
    del context
    return InitProducerIdResponse(error_code=refusal.code, producer_epoch=-1)


@handler(InitProducerIdRequest, _check_right, refused=_refused)
async def handle(
    context: RequestContext[InitProducerIdRequest],
) -> InitProducerIdResponse:
    """Hand out a producer id, or the next epoch of a transactional id."""
    request = context.request
    name = request.transactional_id
    names_one_of_both = (request.producer_id < 0) != (request.producer_epoch < 0)
    if name == "" or names_one_of_both:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    # A producer that is only idempotent needs no coordinator: any broker gives it an
    # id.
    if name is None:
        return InitProducerIdResponse(
            producer_id=context.cluster.new_producer_id(), producer_epoch=0
        )
    coordinator = coordinator_of(context.cluster)
    check_coordinator(context, coordinator, name)
    expected = None
    if request.producer_id >= 0:
        expected = (request.producer_id, request.producer_epoch)
    timeout = request.transaction_timeout_ms
    code, found = coordinator.initialise(name, timeout, expected)
    if not code:
        await coordinator.written(name)
    return InitProducerIdResponse(
        error_code=fencing_code(code, context.version, _FIRST_WITH_FENCED),
        producer_id=found[0],
        producer_epoch=found[1],
    )
