"""What the APIs of delegation tokens share (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._security.tokens import Principal


def principal_of(connection: ServerConnection) -> Principal:
    """The type and the name of who has connected."""
    kind, _, name = connection.principal.partition(":")
    return kind, name


def refusal_of(node: Node, connection: ServerConnection) -> ErrorCode:
    """The error for a connection that may not ask about tokens; NONE if it may.

    It has to have authenticated, and not by a token.
    """
    sasl = connection.sasl
    by_token = (
        sasl is not None and sasl.identity is not None and sasl.identity.is_by_token
    )
    is_anonymous = sasl is None and connection.peer.subject is None
    if by_token or is_anonymous:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if not node.broker.security.config.delegation_tokens:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.NONE
