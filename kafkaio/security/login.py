"""How a client logs in: one `Login` for all of its connections.

The options are checked when the `Login` is made, with its client, so that nothing wrong
waits for the first connection. What the mechanisms share is here: the keys that SCRAM
derives from a password, and the token of OAUTHBEARER.
"""

from __future__ import annotations

import secrets
from typing import Final, Protocol

from kafkaio._machines.sasl.mechanism import Mechanism
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import SaltedPasswords, Scram
from kafkaio.config import ClientConfig
from kafkaio.errors import ConfigurationError

__all__ = ["Login", "login_for"]

#: Random bytes of a nonce; Base64 makes a third more characters of them.
_NONCE_BYTES: Final = 24


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


class PlainLogin:
    """Logs in by user and password; a `Login`."""

    mechanism: str = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        Plain(username, password)  # raises now, and not with the first connection

    async def begin(self, host: str) -> Mechanism:
        """See Login."""
        del host
        return Plain(self._username, self._password)


class ScramLogin:
    """Logs in by SCRAM; a `Login`.

    Args:
        config: the options ``sasl_mechanism``, ``sasl_username``, ``sasl_password``,
            ``sasl_delegation_token`` and ``sasl_scram_max_iterations``.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.mechanism: str = config.sasl_mechanism or ""
        self._config = config
        self._salted = SaltedPasswords()
        self._make()

    async def begin(self, host: str) -> Mechanism:
        """See Login."""
        del host
        return self._make()

    def _make(self) -> Scram:
        config = self._config
        return Scram(
            self.mechanism,
            config.sasl_username or "",
            config.sasl_password or "",
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
            max_iterations=config.sasl_scram_max_iterations,
            salted=self._salted,
            is_delegation_token=config.sasl_delegation_token,
        )


def login_for(config: ClientConfig) -> Login | None:
    """Make what a client's connections log in with.

    Returns:
        None without SASL.

    Raises:
        ConfigurationError: the credentials cannot be used, or a package is missing.
    """
    if not config.security_protocol.startswith("SASL_"):
        return None
    if config.sasl_mechanism == "PLAIN":
        return PlainLogin(config.sasl_username or "", config.sasl_password or "")
    if config.sasl_mechanism in {"SCRAM-SHA-256", "SCRAM-SHA-512"}:
        return ScramLogin(config)
    raise ConfigurationError(f"sasl_mechanism={config.sasl_mechanism!r} is not known")
