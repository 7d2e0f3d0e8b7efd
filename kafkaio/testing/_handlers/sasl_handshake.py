"""SaslHandshake, versions 0 and 1 (KIP-43, KIP-152)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.session import Closed


@handler(SaslHandshakeRequest)
async def handle(
    context: RequestContext[SaslHandshakeRequest],
) -> SaslHandshakeResponse | None:
    """Begin an authentication by the mechanism that the client names."""
    if context.connection.sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    try:
        code = context.connection.sasl.handshake(
            context.request.mechanism, context.version
        )
    except Closed:
        context.connection.abort()
        return None
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        return SaslHandshakeResponse(error_code=code)
    if code:
        await context.connection.refuse()
    mechanisms = list(context.node.broker.security.mechanisms)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
