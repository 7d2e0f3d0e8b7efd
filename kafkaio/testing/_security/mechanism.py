"""The port of a SASL mechanism's server side, and how a mechanism refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Refused(Exception):
    """The client is not who it says it is.

    Args:
        text: what the client is told; None for the text that Kafka has for all
            mechanisms, which gives nothing away.
    """

    def __init__(self, text: str | None = None) -> None:
        super().__init__(text or "invalid credentials")
        self.text = text


class Broken(Exception):
    """The message is one on which Kafka closes the connection without an answer."""


@dataclass(frozen=True, slots=True)
class SaslIdentity:
    """The identity of a client that has authenticated.

    Attributes:
        name: the name of the user, without its type.
        expires_ms: when the credentials end, in milliseconds since the Unix epoch;
            None if they do not.
        is_by_token: whether a delegation token was used (KIP-48).
    """

    name: str
    expires_ms: int | None = None
    is_by_token: bool = False


class ServerMechanismPort(Protocol):
    """The server's side of one authentication."""

    @property
    def identity(self) -> SaslIdentity | None:
        """The identity of the client; None until it is proven."""

    def evaluate(self, message: bytes) -> bytes:
        """Take a message of the client; return the answer.

        Raises:
            Refused: the credentials are wrong.
            Broken: Kafka closes the connection here.
        """
