"""Helpers of the APIs of delegation tokens (KIP-48)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext
from kafkaio.testing._security.tokens import Principal


def principal_of(context: RequestContext[Request[Response]]) -> Principal:
    """The type and the name of the client's principal."""
    kind, _, name = context.connection.principal.partition(":")
    return kind, name


def check_tokens(context: RequestContext[Request[Response]]) -> None:
    """Check that the client may ask about tokens.

    It has to have authenticated, and not by a token.

    Raises:
        Refusal: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
    """
    sasl, peer = context.connection.sasl, context.connection.peer
    by_token = (
        sasl is not None and sasl.identity is not None and sasl.identity.is_by_token
    )
    is_anonymous = sasl is None and peer.subject is None
    if by_token or is_anonymous:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not context.node.broker.security.config.delegation_tokens:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
