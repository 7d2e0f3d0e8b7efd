"""How a client of a registry proves who it is, in the headers of its requests.

Invariant: no ``repr`` and no error has a secret, and at most one call of a provider of
tokens runs at a time on an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kafkaio._config import TokenProvider
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.token import TokenRefresh
from kafkaio._runtime.clock import roll, wall_ms
from kafkaio._runtime.scopes import is_foreign
from kafkaio.errors import AuthenticationError, ConfigurationError, RegistryError
from kafkaio.registry._address import SHORTEST, secrets_of
from kafkaio.registry._flights import Flights
from kafkaio.security._tokens import is_token, name_of, problem_of
from kafkaio.types import Token

_BACKOFF: Final = Backoff(500, 30_000)
#: Headers that the client makes itself.
_OWN: Final = frozenset(
    (
        *("accept", "accept-encoding", "authorization", "connection"),
        *("content-length", "content-type", "host", "transfer-encoding"),
    )
)


class Login:
    """The headers by which requests log in.

    Args:
        basic: user and password, as the header has them; empty for none.
        bearer: a token, or what returns one; None for none.
        headers: more headers for each request.
        patience: seconds that a provider has for a token.

    Raises:
        ConfigurationError: a header cannot be sent, or there are two logins.
    """

    def __init__(
        self,
        basic: str,
        bearer: str | TokenProvider | None,
        headers: Mapping[str, str],
        patience: float,
    ) -> None:
        if basic and bearer is not None:
            raise ConfigurationError("give one of basic_auth and bearer_token")
        self._headers = _checked(headers)
        self._basic = basic
        self._static = ""
        self._provider: TokenProvider | None = None
        if isinstance(bearer, str):
            if not is_token(bearer):
                raise ConfigurationError(
                    "bearer_token is empty, or has spaces or characters beyond ASCII"
                )
            self._static = bearer
        elif bearer is not None:
            self._provider = _callable(bearer)
        self._patience = patience
        self._refresh = TokenRefresh(_BACKOFF)
        self._token: Token | None = None
        self._failure = ""

    def __repr__(self) -> str:
        return f"<Login {self.kind}>"

    @property
    def kind(self) -> str:
        """Which login it is, in a word."""
        if self._provider is not None:
            return name_of(self._provider)
        return "bearer" if self._static else "basic" if self._basic else "none"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no error may show."""
        token = self._token.value if self._token else ""
        found = (self._static, token, *self._headers.values())
        long = tuple(secret for secret in found if len(secret) >= SHORTEST)
        return (*secrets_of(self._basic), *long)

    async def headers(self, flights: Flights, basic: str) -> dict[str, str]:
        """Return the headers of the next request.

        Args:
            flights: the requests of this event loop.
            basic: user and password of the address, for which they win.

        Raises:
            RegistryError: the provider brought no token; retriable.
        """
        made = dict(self._headers)
        bearer = self._static
        if self._provider is not None:
            bearer = await self._current(flights, self._provider)
        if basic or self._basic:
            made["Authorization"] = f"Basic {basic or self._basic}"
        elif bearer:
            made["Authorization"] = f"Bearer {bearer}"
        return made

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Note that the registry refused a request; return whether to try it again.

        Args:
            headers: those of the request. If they have the present token of a provider,
                that is given up: it may have been revoked.
        """
        if self._token is None:
            return False
        if headers.get("Authorization") == f"Bearer {self._token.value}":
            self._token = None
            self._refresh = TokenRefresh(_BACKOFF)
            return True
        # Another request has brought a new one already.
        return "Authorization" in headers

    async def _current(self, flights: Flights, provider: TokenProvider) -> str:
        now = _now()
        token = self._token
        is_valid = token is not None and self._refresh.is_valid(now)
        if token is not None and is_valid and now < self._refresh.due:
            return token.value
        if self._refresh.may_ask(now):
            await flights.join("token", lambda: self._ask(provider))
            token = self._token
            is_valid = token is not None and self._refresh.is_valid(_now())
        if token is not None and is_valid:
            return token.value
        raise RegistryError(f"no bearer token: {self._failure}", retriable=True)

    async def _ask(self, provider: TokenProvider) -> None:
        """Ask the provider once, and keep what it brings: a token or a failure."""
        name = name_of(provider)
        given: object = None
        limit = asyncio.timeout(self._patience)
        try:
            async with limit:
                given = await provider()
        except AuthenticationError as error:
            # Its text is made without secrets.
            self._failure = str(error)
        except Exception as error:  # noqa: BLE001 - of a user's function
            # The text may quote the token.
            what = f"failed with {type(error).__name__}"
            if limit.expired():
                what = f"returned none within {self._patience:g} s"
            self._failure = f"{name} {what}"
        except BaseException as error:
            if not is_foreign(error):
                raise
            what = "ended with CancelledError, and nothing had cancelled it"
            self._failure = f"{name} {what}"
        else:
            problem = problem_of(given)
            self._failure = problem and f"{name} {problem}"
        if self._failure or not isinstance(given, Token):
            self._refresh.failed(_now(), roll())
            return
        self._token = given
        self._refresh.obtained(_now(), given.expires, roll())


def _now() -> float:
    # The clock of `Token.expires`.
    return wall_ms() / 1000


def _callable(provider: TokenProvider) -> TokenProvider:
    given: object = provider
    if not callable(given):
        kind = type(given).__name__
        raise ConfigurationError(
            f"bearer_token must be a str or an async callable, not {kind}"
        )
    return provider


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    given: object = headers
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise ConfigurationError(f"headers must be a mapping of texts, not {kind}")
    found: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigurationError("headers must be a mapping of texts")
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name:
            raise ConfigurationError("headers: a name is not one of HTTP")
        if not (value.isascii() and value.isprintable()):
            raise ConfigurationError(f"headers: {name} has characters beyond ASCII")
        if name.lower() in _OWN:
            raise ConfigurationError(
                f"headers: {name} is made by Registry; see basic_auth= and "
                "bearer_token= for logins"
            )
        found[name] = value
    return found
