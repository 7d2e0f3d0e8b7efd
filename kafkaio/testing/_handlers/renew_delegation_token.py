"""RenewDelegationToken, versions 1 and 2 (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import check_tokens, principal_of
from kafkaio.testing._security.tokens import TokenRefused


def _refused(
    context: RequestContext[RenewDelegationTokenRequest], refusal: Refusal
) -> RenewDelegationTokenResponse:
    del context
    return RenewDelegationTokenResponse(error_code=refusal.code, expiry_timestamp_ms=-1)


@handler(RenewDelegationTokenRequest, check_tokens, refused=_refused)
async def handle(
    context: RequestContext[RenewDelegationTokenRequest],
) -> RenewDelegationTokenResponse:
    """Let a token live on."""
    request = context.request
    try:
        ends = context.node.broker.security.tokens.renew(
            request.hmac, principal_of(context), request.renew_period_ms
        )
    except TokenRefused as refused:
        return RenewDelegationTokenResponse(error_code=refused.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
