"""How a client logs in: one `Login` for all of its connections."""

from __future__ import annotations

from typing import Protocol

from kafkaio._machines.sasl.mechanism import Mechanism

__all__ = ["Login"]


class Login(Protocol):
    """Makes a mechanism for each authentication; used by all connections of a client.

    Attributes:
        mechanism: the name of the SASL mechanism.
    """

    mechanism: str

    async def begin(self, host: str) -> Mechanism:
        """Return a new mechanism; waits for a token where one is needed.

        Args:
            host: the broker's name, as the client knows it.

        Raises:
            AuthenticationError: there are no credentials.
        """
