"""DescribeDelegationToken, versions 1 to 3 (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import check_tokens, principal_of
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.tokens import StoredToken

#: KIP-373.
_FIRST_WITH_REQUESTER: Final = 3


@handler(DescribeDelegationTokenRequest, check_tokens)
async def handle(
    context: RequestContext[DescribeDelegationTokenRequest],
) -> DescribeDelegationTokenResponse:
    """List the tokens of some owners and renewers, or all."""
    owners = None
    if context.request.owners is not None:
        owners = [
            (one.principal_type, one.principal_name) for one in context.request.owners
        ]
    rights, requester = context.rights, principal_of(context)
    tokens = [
        token
        for token in context.node.broker.security.tokens.of(owners)
        if token.belongs_to(requester)
        or rights.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or rights.may(
            Operation.DESCRIBE_TOKENS, ResourceType.USER, ":".join(token.owner)
        )
    ]
    version = context.version
    return DescribeDelegationTokenResponse(
        tokens=[_described(token, version) for token in tokens]
    )


def _described(token: StoredToken, version: int) -> DescribedDelegationToken:
    found = DescribedDelegationToken(
        principal_type=token.owner[0],
        principal_name=token.owner[1],
        issue_timestamp=token.issued,
        expiry_timestamp=token.expires,
        max_timestamp=token.latest,
        token_id=token.token_id,
        hmac=token.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in token.renewers
        ],
    )
    if version >= _FIRST_WITH_REQUESTER:
        found.token_requester_principal_type = token.requester[0]
        found.token_requester_principal_name = token.requester[1]
    return found
