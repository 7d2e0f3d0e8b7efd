"""SaslAuthenticate, versions 0 to 2 (KIP-152, KIP-368)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkaio.testing._broker.faults import Action, Fault
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.session import Closed, SaslStep

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"
_SERVER_FIRST: Final = re.compile(rb"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=\d+")


@handler(SaslAuthenticateRequest)
async def handle(
    context: RequestContext[SaslAuthenticateRequest],
) -> SaslAuthenticateResponse | None:
    """Take a message of the client's mechanism; answer as the mechanism does."""
    endless = context.connection.lie(Action.ENDLESS)
    if endless is not None:
        return SaslAuthenticateResponse(auth_bytes=endless.data)
    if context.connection.sasl is None:
        step = SaslStep(ErrorCode.ILLEGAL_SASL_STATE, _TOO_LATE)
    else:
        try:
            step = context.connection.sasl.authenticate(
                context.request.auth_bytes, context.version
            )
        except Closed:
            context.connection.abort()
            return None
    # Kafka delays the answer, so that guessing passwords is slow.
    if step.code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        await context.connection.refuse()
    elif (
        not step.code
        and context.connection.sasl is not None
        and context.connection.sasl.is_complete
    ):
        context.connection.authenticated()
    return SaslAuthenticateResponse(
        error_code=step.code,
        error_message=step.text,
        auth_bytes=_falsified(step.data, context.connection.lie),
        session_lifetime_ms=step.lifetime_ms,
    )


def _falsified(data: bytes, lie: Callable[..., Fault | None]) -> bytes:
    """Return the message of SCRAM's server, falsified if a fault demands it."""
    first = _SERVER_FIRST.fullmatch(data)
    if first is not None:
        nonce, salt = first["nonce"], first["salt"]
        if lie(Action.NONCE) is not None:
            return data.replace(nonce, nonce[::-1], 1)
        hostile = lie(Action.ITERATIONS)
        if hostile is not None:
            return b"r=%b,s=%b,i=%d" % (nonce, salt, hostile.position)
    elif data.startswith(b"v=") and lie(Action.SIGNATURE) is not None:
        return b"v=" + b64encode(bytes(len(data) * 3 // 4 - 2))
    return data
