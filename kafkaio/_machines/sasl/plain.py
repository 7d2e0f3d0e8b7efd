"""PLAIN: the password itself, for connections that TLS protects (RFC 4616, KIP-43)."""

from __future__ import annotations

from typing import Final

from kafkaio._machines.sasl.mechanism import Outcome, has_surrogates
from kafkaio.errors import ConfigurationError, ProtocolError


class Plain:
    """One authentication by user and password.

    Args:
        username: the user.
        password: its password.

    Raises:
        ConfigurationError: one of them is empty, or has a character that PLAIN cannot
            carry.
    """

    name: Final = "PLAIN"
    is_single: Final = True
    __slots__ = ("_message",)

    def __init__(self, username: str, password: str) -> None:
        for what, text in (("sasl_username", username), ("sasl_password", password)):
            if not text or "\0" in text or has_surrogates(text):
                raise ConfigurationError(
                    f"{what} is empty, has a NUL character or is not Unicode text"
                )
        # The identity to act as stays empty: Kafka allows only the user itself.
        self._message = f"\0{username}\0{password}".encode()

    def __repr__(self) -> str:
        return "<Plain>"

    def begin(self) -> Outcome:
        """See `MechanismPort`."""
        return self._message

    def receive(self, challenge: bytes) -> Outcome:
        """See `MechanismPort`: the broker has nothing to prove; its answer is empty.

        Raises:
            ProtocolError: the answer is not empty.
        """
        if challenge:
            raise ProtocolError("the broker answers PLAIN with a challenge")
        return None
