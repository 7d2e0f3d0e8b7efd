"""InitProducerId, versions 0 to 5, without transactions (KIP-98, KIP-360)."""

from __future__ import annotations

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node


async def handle(
    node: Node,
    header: RequestHeader,
    request: InitProducerIdRequest,
    connection: ServerConnection,
) -> InitProducerIdResponse:
    """Hand out a new producer id; refuse transactional ids."""
    del header, connection
    names_one_of_both = (request.producer_id < 0) != (request.producer_epoch < 0)
    if request.transactional_id == "" or names_one_of_both:
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1
        )
    if request.transactional_id is not None:
        # Clients do not retry after this error; after a retriable one they would
        # never stop.
        return InitProducerIdResponse(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            producer_epoch=-1,
        )
    return InitProducerIdResponse(
        producer_id=node.cluster.new_producer_id(), producer_epoch=0
    )
