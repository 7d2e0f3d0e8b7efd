"""How a client logs in: one `Login` for all of its connections.

The options are checked when the `Login` is made, with its client, so that nothing wrong
waits for the first connection. What the mechanisms share is here: the keys that SCRAM
derives from a password, and the token of OAUTHBEARER.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Final, Protocol

from kafkaio._machines.sasl.gssapi import Gssapi
from kafkaio._machines.sasl.mechanism import Mechanism
from kafkaio._machines.sasl.oauthbearer import OAuthBearer
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import SaltedPasswords, Scram
from kafkaio._runtime.clock import wall_ms
from kafkaio.config import ClientConfig, TokenProvider
from kafkaio.errors import AuthenticationError, ConfigurationError
from kafkaio.security.gssapi import Kerberos
from kafkaio.types import Token

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


class OAuthBearerLogin:
    """Logs in by tokens; a `Login`.

    Args:
        provider: returns a token when it is awaited.
    """

    mechanism: str = "OAUTHBEARER"

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider

    async def begin(self, host: str) -> Mechanism:
        """See Login."""
        del host
        try:
            given: object = await self._provider()
        except AuthenticationError:
            raise
        except Exception as error:
            # Its text may quote the token: it stays with the cause.
            raise self._failed(f"failed with {type(error).__name__}") from error
        problem = _problem(given)
        if problem or not isinstance(given, Token):
            # The error may be shown with the variables of this call.
            del given
            raise self._failed(problem)
        return OAuthBearer(given)

    def _failed(self, what: str) -> AuthenticationError:
        function = self._provider
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return AuthenticationError(
            f"sasl_oauth_token_provider {name} {what}",
            mechanism=self.mechanism,
            step="get credentials",
        )


def _problem(given: object) -> str:
    """What is wrong with a provider's result; empty for a token that can be used."""
    if not isinstance(given, Token):
        return f"returned {type(given).__name__}, and not Token"
    value: object = given.value
    if not isinstance(value, str):
        return f"returned a token of type {type(value).__name__}"
    expires: object = given.expires
    if not isinstance(expires, int | float) or not math.isfinite(expires):
        return "returned a token whose end is not a number of seconds"
    late = wall_ms() / 1000 - expires
    if late >= 0:
        return f"returned a token that expired {late:.3g} s ago"
    extensions: object = given.extensions
    if not isinstance(extensions, Mapping) or not all(
        isinstance(text, str) for pair in extensions.items() for text in pair
    ):
        return "returned extensions that are not texts by name"
    return ""


class GssapiLogin:
    """Logs in by Kerberos; a `Login`.

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

    async def begin(self, host: str) -> Mechanism:
        """See Login."""
        return Gssapi(self._kerberos.context(host))


def login_for(config: ClientConfig) -> Login:
    """Make what the connections of a client with SASL log in with.

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
        return OAuthBearerLogin(provider)
    raise ConfigurationError(f"sasl_mechanism={config.sasl_mechanism!r} is not known")
