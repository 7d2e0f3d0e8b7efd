"""CreateDelegationToken, versions 1 to 3 (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._tokens import check_tokens, principal_of
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.tokens import Principal

#: KIP-373.
_FIRST_WITH_REQUESTER: Final = 3


def _owner(context: RequestContext[CreateDelegationTokenRequest]) -> Principal:
    """The owner of the token: the client, if the request names no other."""
    request = context.request
    if request.owner_principal_name:
        return request.owner_principal_type or "", request.owner_principal_name
    return principal_of(context)


def _check_owner(context: RequestContext[CreateDelegationTokenRequest]) -> None:
    """Check that the client may make a token for the owner."""
    owner = _owner(context)
    if owner != principal_of(context) and (
        code := context.rights.denied(
            Operation.CREATE_TOKENS, ResourceType.USER, ":".join(owner)
        )
    ):
        raise Refusal(code)


def _refused(
    context: RequestContext[CreateDelegationTokenRequest], refusal: Refusal
) -> CreateDelegationTokenResponse:
    response = _response(context)
    response.error_code = refusal.code
    return response


def _response(
    context: RequestContext[CreateDelegationTokenRequest],
) -> CreateDelegationTokenResponse:
    """A response without a token."""
    owner, requester = _owner(context), principal_of(context)
    response = CreateDelegationTokenResponse(
        principal_type=owner[0],
        principal_name=owner[1],
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if context.version >= _FIRST_WITH_REQUESTER:
        response.token_requester_principal_type = requester[0]
        response.token_requester_principal_name = requester[1]
    return response


@handler(CreateDelegationTokenRequest, check_tokens, _check_owner, refused=_refused)
async def handle(
    context: RequestContext[CreateDelegationTokenRequest],
) -> CreateDelegationTokenResponse:
    """Make a token for the client, or for another owner."""
    request = context.request
    renewers = [(one.principal_type, one.principal_name) for one in request.renewers]
    # Kafka knows no other type of principal.
    if any(kind != "User" for kind, _ in renewers):
        raise Refusal(ErrorCode.INVALID_PRINCIPAL_TYPE)
    token = context.node.broker.security.tokens.create(
        _owner(context), principal_of(context), renewers, request.max_lifetime_ms
    )
    response = _response(context)
    response.issue_timestamp_ms = token.issued
    response.expiry_timestamp_ms = token.expires
    response.max_timestamp_ms = token.latest
    response.token_id = token.token_id
    response.hmac = token.hmac
    return response
