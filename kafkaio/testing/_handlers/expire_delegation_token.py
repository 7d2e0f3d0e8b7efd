"""ExpireDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.tokens import TokenRefused


@handler(ExpireDelegationTokenRequest)
async def handle(
    context: RequestContext[ExpireDelegationTokenRequest],
) -> ExpireDelegationTokenResponse:
    """Set when a token ends."""
    code = refusal_of(context.node, context.connection)
    if code:
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)
    try:
        ends = context.node.broker.security.tokens.expire(
            context.request.hmac,
            principal_of(context.connection),
            context.request.expiry_time_period_ms,
        )
    except TokenRefused as refused:
        return ExpireDelegationTokenResponse(error_code=refused.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
