"""SaslHandshake, versions 0 and 1 (KIP-43, KIP-152)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._security.session import Closed


async def handle(
    node: Node,
    header: RequestHeader,
    request: SaslHandshakeRequest,
    connection: ServerConnection,
) -> SaslHandshakeResponse | None:
    """Begin an authentication by the mechanism that the client names."""
    if connection.sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    try:
        code = connection.sasl.handshake(request.mechanism, header.request_api_version)
    except Closed:
        connection.abort()
        return None
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        return SaslHandshakeResponse(error_code=code)
    if code:
        await connection.refuse()
    mechanisms = list(node.broker.security.mechanisms)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
