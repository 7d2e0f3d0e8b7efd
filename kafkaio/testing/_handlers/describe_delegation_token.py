"""DescribeDelegationToken, versions 1 to 3 (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._handlers._tokens import principal_of, refusal_of
from kafkaio.testing._security.acls import Operation, ResourceType
from kafkaio.testing._security.tokens import DelegationToken

_FIRST_WITH_REQUESTER: Final = 3


async def handle(
    node: Node,
    header: RequestHeader,
    request: DescribeDelegationTokenRequest,
    connection: ServerConnection,
) -> DescribeDelegationTokenResponse:
    """List the tokens of some owners and renewers, or all."""
    code = refusal_of(node, connection)
    if code:
        return DescribeDelegationTokenResponse(error_code=code)
    owners = None
    if request.owners is not None:
        owners = [(one.principal_type, one.principal_name) for one in request.owners]
    rights, requester = rights_of(node, connection), principal_of(connection)
    tokens = [
        token
        for token in node.broker.security.tokens.of(owners)
        if token.belongs_to(requester)
        or rights.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or rights.may(
            Operation.DESCRIBE_TOKENS, ResourceType.USER, ":".join(token.owner)
        )
    ]
    version = header.request_api_version
    return DescribeDelegationTokenResponse(
        tokens=[_described(token, version) for token in tokens]
    )


def _described(token: DelegationToken, version: int) -> DescribedDelegationToken:
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
