"""How a client logs in: one `LoginPort` for all of its connections.

The options are checked when it is made, with its client, so that nothing wrong waits
for the first connection. The mechanisms share the keys that SCRAM derives from a
password, and the token of OAUTHBEARER.
"""

from __future__ import annotations

import secrets
from typing import Final, Protocol

from kafkaio._config import ClientConfig, TokenProvider
from kafkaio._config.login_properties import TokenRequest
from kafkaio._machines.sasl.gssapi import Gssapi
from kafkaio._machines.sasl.mechanism import MechanismPort
from kafkaio._machines.sasl.oauthbearer import OAuthBearer
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import SaltedPasswords, Scram
from kafkaio.errors import ConfigurationError
from kafkaio.security._gssapi import Kerberos
from kafkaio.security._tokens import TokenSource

#: Random bytes of a nonce; Base64 makes a third more characters of them.
_NONCE_BYTES: Final = 24


class LoginPort(Protocol):
    """Makes a mechanism for each authentication; used by all connections of a client.

    Attributes:
        mechanism: the name of the SASL mechanism.
    """

    mechanism: str

    async def begin(self, host: str) -> MechanismPort:
        """Return a new mechanism; waits for a token where one is needed.

        Args:
            host: the broker's name, as the client knows it.

        Raises:
            AuthenticationError: there are no credentials.
        """

    async def aclose(self) -> None:
        """End what runs in the background. May be called again."""


class PlainLogin:
    """Logs in by user and password; a `LoginPort`."""

    mechanism: str = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        # Wrong credentials raise now, and not with the first connection.
        Plain(username, password)

    async def begin(self, host: str) -> MechanismPort:
        """See LoginPort."""
        del host
        return Plain(self._username, self._password)

    async def aclose(self) -> None:
        """See LoginPort: nothing runs."""


class ScramLogin:
    """Logs in by SCRAM; a `LoginPort`.

    Args:
        config: the options ``sasl_mechanism``, ``sasl_username``, ``sasl_password``,
            ``sasl_delegation_token`` and ``sasl_scram_max_iterations``.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.mechanism: str = config.sasl_mechanism or ""
        self._config = config
        # Shared by all connections: to salt a password takes thousands of rounds, and
        # brokers give the same salt again.
        self._salted = SaltedPasswords()
        self._make()  # raises now for wrong credentials

    async def begin(self, host: str) -> MechanismPort:
        """See LoginPort."""
        del host
        return self._make()

    async def aclose(self) -> None:
        """See LoginPort: nothing runs."""

    def _make(self) -> Scram:
        config = self._config
        return Scram(
            self.mechanism,
            config.sasl_username or "",
            config.sasl_password or "",
            # A new nonce for each authentication: a repeated one could be replayed.
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
            max_iterations=config.sasl_scram_max_iterations,
            salted=self._salted,
            is_delegation_token=config.sasl_delegation_token,
        )


class OAuthBearerLogin:
    """Logs in by tokens; a `LoginPort`.

    Args:
        provider: returns a token when it is awaited.
        timeout: the seconds that one call of the provider may take.
    """

    mechanism: str = "OAUTHBEARER"

    def __init__(self, provider: TokenProvider, timeout: float) -> None:
        self._source = TokenSource(provider, timeout=timeout)

    async def begin(self, host: str) -> MechanismPort:
        """See LoginPort."""
        del host
        return OAuthBearer(await self._source.token())

    async def aclose(self) -> None:
        """See LoginPort."""
        await self._source.aclose()


class GssapiLogin:
    """Logs in by Kerberos; a `LoginPort`.

    Args:
        config: the options ``sasl_kerberos_...``.
    """

    mechanism: str = "GSSAPI"

    def __init__(self, config: ClientConfig) -> None:
        self._kerberos = Kerberos(
            config.sasl_kerberos_service_name,
            config.sasl_kerberos_principal,
            config.sasl_kerberos_keytab,
        )

    async def begin(self, host: str) -> MechanismPort:
        """See LoginPort."""
        return Gssapi(self._kerberos.context(host))

    async def aclose(self) -> None:
        """See LoginPort: nothing runs."""


def login_for(config: ClientConfig) -> LoginPort:
    """Make the login of a client with SASL, for all of its connections.

    Raises:
        ConfigurationError: the credentials cannot be used, or a package is missing.
    """
    if config.sasl_mechanism == "PLAIN":
        return PlainLogin(config.sasl_username or "", config.sasl_password or "")
    if config.sasl_mechanism in {"SCRAM-SHA-256", "SCRAM-SHA-512"}:
        return ScramLogin(config)
    if config.sasl_mechanism == "GSSAPI":
        return GssapiLogin(config)
    provider = config.sasl_oauth_token_provider
    if config.sasl_mechanism == "OAUTHBEARER" and provider is not None:
        limit = config.socket_connection_setup_timeout_ms / 1000
        if isinstance(provider, TokenRequest):
            # Loads the libraries of the providers, which most programs do not need.
            from kafkaio.security._providers import provider_for

            provider = provider_for(provider)
        return OAuthBearerLogin(provider, limit)
    raise ConfigurationError(f"sasl_mechanism={config.sasl_mechanism!r} is not known")
