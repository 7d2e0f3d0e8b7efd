"""OAUTHBEARER: a token that another server has issued (RFC 7628, KIP-255, KIP-768)."""

from __future__ import annotations

import json
import re
from typing import Final

from kafkaio._machines.sasl.mechanism import Outcome
from kafkaio.errors import AuthenticationError, ProtocolError
from kafkaio.types import Token

#: The most bytes of a message that a broker reads (sasl.server.max.receive.size).
_LONGEST_MESSAGE: Final = 524_288
#: The most bytes of a refusal that are read.
_LONGEST_REFUSAL: Final = 4_096
_SEPARATOR: Final = "\x01"
#: A token, as HTTP's Authorization header has it (RFC 6750).
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_NAME: Final = re.compile(r"[A-Za-z]+")
# An empty value is right by RFC 7628, and refused by Kafka as a malformed message.
_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")


class OAuthBearer:
    """One authentication by a token.

    A broker that refuses the token says why in JSON, as if there were more to come. The
    client answers with one byte, and gets the refusal as an error (RFC 7628, 3.2.3).

    Args:
        token: the token.
    """

    name: Final = "OAUTHBEARER"
    is_single: Final = True
    __slots__ = ("_refusal", "_token")

    def __init__(self, token: Token) -> None:
        self._token = token
        self._refusal = ""

    def __repr__(self) -> str:
        return "<OAuthBearer>"

    def begin(self) -> Outcome:
        """See `MechanismPort`."""
        problem = _problem(self._token)
        if problem:
            raise AuthenticationError(problem)
        return _first_message(self._token)

    def receive(self, challenge: bytes) -> Outcome:
        """See `MechanismPort`: every answer with data is a refusal."""
        if self._refusal:
            raise AuthenticationError(
                f"the broker refuses the token: {self._refusal}", reason=self._refusal
            )
        if not challenge:
            return None
        if len(challenge) > _LONGEST_REFUSAL:
            raise ProtocolError(f"a refusal of {len(challenge)} bytes")
        self._refusal = _read_refusal(bytes(challenge))
        return _SEPARATOR.encode("ascii")


def _first_message(token: Token) -> bytes:
    pairs = [f"{name}={value}" for name, value in token.extensions.items()]
    parts = ["n,,", f"auth=Bearer {token.value}", *pairs, _SEPARATOR]
    return _SEPARATOR.join(parts).encode("ascii")


def _problem(token: Token) -> str:
    """Why the token cannot be sent; empty if it can.

    No error is raised where a variable has the token: a debugger may show them.
    """
    if not _TOKEN.fullmatch(token.value):
        return "the token is empty, or has a character that no bearer token has"
    for name, value in token.extensions.items():
        if not _NAME.fullmatch(name) or name == "auth":
            return f"{name!r} is not a name of a SASL extension"
        if not _VALUE.fullmatch(value):
            return (
                f"the value of the SASL extension {name!r} is empty or not printable "
                "ASCII"
            )
    size = len(_first_message(token))
    if size > _LONGEST_MESSAGE:
        return (
            f"the token makes a message of {size} bytes, and brokers read at most "
            f"{_LONGEST_MESSAGE}"
        )
    return ""


def _read_refusal(data: bytes) -> str:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise ProtocolError("the broker's refusal is not JSON") from None
    if not isinstance(said, dict):
        raise ProtocolError("the broker's refusal is not a JSON object")
    return (
        ", ".join(
            f"{key}: {said[key]}"
            for key in ("status", "scope", "openid-configuration")
            if isinstance(said.get(key), str)
        )
        or "it gives no status"
    )
