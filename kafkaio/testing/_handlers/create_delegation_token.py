"""CreateDelegationToken, versions 1 to 3 (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.tokens import Principal

_FIRST_WITH_REQUESTER: Final = 3


@handler(CreateDelegationTokenRequest)
async def handle(
    context: RequestContext[CreateDelegationTokenRequest],
) -> CreateDelegationTokenResponse:
    """Make a token for the client, or for another owner."""
    request = context.request
    requester = principal_of(context.connection)
    owner = requester
    if request.owner_principal_name:
        owner = (
            request.owner_principal_type or "",
            request.owner_principal_name,
        )
    response = _answer(owner, requester, context.version)
    code = refusal_of(context.node, context.connection)
    if not code and owner != requester:
        code = context.rights.denied(
            Operation.CREATE_TOKENS, ResourceType.USER, ":".join(owner)
        )
    renewers = [(one.principal_type, one.principal_name) for one in request.renewers]
    if not code and any(kind != "User" for kind, _ in renewers):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    if code:
        response.error_code = code
        return response
    token = context.node.broker.security.tokens.create(
        owner, requester, renewers, request.max_lifetime_ms
    )
    response.issue_timestamp_ms = token.issued
    response.expiry_timestamp_ms = token.expires
    response.max_timestamp_ms = token.latest
    response.token_id = token.token_id
    response.hmac = token.hmac
    return response


def _answer(
    owner: Principal, requester: Principal, version: int
) -> CreateDelegationTokenResponse:
    """An answer without a token."""
    response = CreateDelegationTokenResponse(
        principal_type=owner[0],
        principal_name=owner[1],
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if version >= _FIRST_WITH_REQUESTER:
        response.token_requester_principal_type = requester[0]
        response.token_requester_principal_name = requester[1]
    return response
