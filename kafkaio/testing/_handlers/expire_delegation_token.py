"""ExpireDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.tokens import TokenRefused


async def handle(
    node: Node,
    header: RequestHeader,
    request: ExpireDelegationTokenRequest,
    connection: ServerConnection,
) -> ExpireDelegationTokenResponse:
    """Set when a token ends."""
    del header
    code = refusal_of(node, connection)
    if code:
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)
    try:
        ends = node.broker.security.tokens.expire(
            request.hmac, principal_of(connection), request.expiry_time_period_ms
        )
    except TokenRefused as refused:
        return ExpireDelegationTokenResponse(error_code=refused.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
