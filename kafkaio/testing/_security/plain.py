"""PLAIN (RFC 4616), the server's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaio.testing._security.mechanism import Refused, SaslIdentity

_PARTS: Final = 3


class PlainServer:
    """One authentication by PLAIN; a ServerMechanism.

    Args:
        is_password: whether a user has a password.
    """

    def __init__(self, is_password: Callable[[str, str], bool]) -> None:
        self.identity: SaslIdentity | None = None
        self._is_password = is_password

    def evaluate(self, message: bytes) -> bytes:
        """See ServerMechanism. The texts are Kafka's."""
        parts = message.decode("utf-8", "replace").split("\0")
        if len(parts) != _PARTS:
            raise Refused(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorized, user, password = parts
        if not user:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified")
        if not self._is_password(user, password):
            raise Refused("Authentication failed: Invalid username or password")
        if authorized not in {"", user}:
            raise Refused(
                "Authentication failed: Client requested an authorization id that is"
                " different from username"
            )
        self.identity = SaslIdentity(user)
        return b""
