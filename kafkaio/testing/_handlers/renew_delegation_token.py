"""RenewDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.tokens import TokenRefused


async def handle(
    node: Node,
    header: RequestHeader,
    request: RenewDelegationTokenRequest,
    connection: ServerConnection,
) -> RenewDelegationTokenResponse:
    """Let a token live on."""
    del header
    code = refusal_of(node, connection)
    if code:
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)
    try:
        ends = node.broker.security.tokens.renew(
            request.hmac, principal_of(connection), request.renew_period_ms
        )
    except TokenRefused as refused:
        return RenewDelegationTokenResponse(error_code=refused.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
