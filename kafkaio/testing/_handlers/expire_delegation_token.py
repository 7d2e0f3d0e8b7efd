"""ExpireDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import check_tokens, principal_of
from kafkaio.testing._security.tokens import TokenRefused


def _refused(
    context: RequestContext[ExpireDelegationTokenRequest], refusal: Refusal
) -> ExpireDelegationTokenResponse:
    del context
    return ExpireDelegationTokenResponse(
        error_code=refusal.code, expiry_timestamp_ms=-1
    )


@handler(ExpireDelegationTokenRequest, check_tokens, refused=_refused)
async def handle(
    context: RequestContext[ExpireDelegationTokenRequest],
) -> ExpireDelegationTokenResponse:
    """Set when a token ends."""
    request = context.request
    try:
        ends = context.node.broker.security.tokens.expire(
            request.hmac, principal_of(context), request.expiry_time_period_ms
        )
    except TokenRefused as refused:
        return ExpireDelegationTokenResponse(error_code=refused.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
