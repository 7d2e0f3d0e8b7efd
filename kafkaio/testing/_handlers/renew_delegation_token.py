"""RenewDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.tokens import TokenRefused


@handler(RenewDelegationTokenRequest)
async def handle(
    context: RequestContext[RenewDelegationTokenRequest],
) -> RenewDelegationTokenResponse:
    """Let a token live on."""
    code = refusal_of(context.node, context.connection)
    if code:
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)
    try:
        ends = context.node.broker.security.tokens.renew(
            context.request.hmac,
            principal_of(context.connection),
            context.request.renew_period_ms,
        )
    except TokenRefused as refused:
        return RenewDelegationTokenResponse(error_code=refused.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
