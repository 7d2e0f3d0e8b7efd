"""The port of a SASL mechanism: the messages of one authentication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

#: Takes too long for the event loop: to be called in a thread. Like
#: `MechanismPort.receive`, it returns the next message to send, and raises its errors.
Work: TypeAlias = Callable[[], bytes | None]
#: The message to send next; None if nothing is left to send.
Outcome: TypeAlias = bytes | Work | None


class MechanismPort(Protocol):
    """The client's side of one authentication on one connection; used once.

    While a `Work` runs, nothing else is called. No method does any I/O of its own, and
    no error has a secret in its text.
    """

    @property
    def name(self) -> str:
        """Its name as brokers know it, such as ``SCRAM-SHA-256``."""

    @property
    def is_single(self) -> bool:
        """Whether it is over with the answer to its first message.

        Such a mechanism can authenticate again behind requests in flight, without a
        gap (KIP-368).
        """

    def begin(self) -> Outcome:
        """The first message; never None.

        Raises:
            AuthenticationError: the credentials cannot be used.
        """

    def receive(self, challenge: bytes) -> Outcome:
        """Take the broker's answer; return the next message.

        Returns:
            None if the broker has proven all that the mechanism demands, and nothing
            is left to send.

        Raises:
            AuthenticationError: the broker did not prove that it knows the secret, or
                demands more than the client allows.
            ProtocolError: the answer is malformed.
        """


def has_surrogates(text: str) -> bool:
    """Whether UTF-8 cannot encode a text: the error of ``encode`` would quote it."""
    return any("\ud800" <= character <= "\udfff" for character in text)
