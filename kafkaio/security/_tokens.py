"""The bearer token of a client: one for all connections, renewed before it ends.

Invariant: at most one call of the provider runs at a time, in a task of the
`TokenSource`. A caller that is cancelled ends only its own wait.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Mapping
from typing import Final

from kafkaio._config import TokenProvider
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.token import TokenRefresh
from kafkaio._runtime.clock import roll, wall_ms
from kafkaio._runtime.scopes import is_foreign
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import AuthenticationError, ClosedError
from kafkaio.types import Token

#: The wait after a failure, in milliseconds: the first, and the longest.
_BACKOFF: Final = Backoff(500, 30_000)
#: Seconds after which the due time is checked again: somebody may set the wall clock.
_LONGEST_SLEEP: Final = 30.0


class TokenSource:
    """Keeps the token of a client.

    The first `token` calls the provider. From then on a background task gets a new
    token at 0.72 to 0.8 of the life of the present one, which is used until the new one
    arrives or until its end. A provider that fails is called again after 0.5 s, then
    after twice as long each time, up to 30 s (each +-20 %). In between, callers without
    a token get the last error at once. Belongs to one event loop.

    Args:
        provider: returns a token when it is awaited.
        timeout: the seconds that one call of the provider may take.
    """

    def __init__(self, provider: TokenProvider, *, timeout: float = 10.0) -> None:
        self._provider = provider
        self._timeout = timeout
        self._name = name_of(provider)
        self._refresh = TokenRefresh(_BACKOFF)
        self._token: Token | None = None
        # The last error of the provider, for callers during a pause.
        self._failure: AuthenticationError | None = None
        # Set when the running call of the provider ends, successfully or not.
        self._asking: asyncio.Event | None = None
        self._supervisor: Supervisor | None = None
        self._crash: BaseException | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<TokenSource {self._name}>"

    async def token(self) -> Token:
        """Return a token that has not ended; waits for the provider if there is none.

        Concurrent callers share one call of the provider. A caller can be cancelled.

        Raises:
            AuthenticationError: the provider failed, was late or returned no usable
                token. The text names the provider, and never the token.
            ClosedError: the source is closed.
        """
        # `_ask` sets `_asking` before it returns, so that all callers of this moment
        # wait for one call of the provider.
        is_over = self._is_closed or self._crash is not None
        if not is_over and not self._refresh.is_valid(_now()):
            if self._asking is None and self._refresh.may_ask(_now()):
                self._ask()
            if self._asking is not None:
                await self._asking.wait()
        # Both may have changed during the wait: closing wakes the callers, too.
        if self._is_closed or self._crash is not None:
            raise ClosedError(f"{self!r}: closed") from self._crash
        if self._token is not None and self._refresh.is_valid(_now()):
            return self._token
        failure = self._failure or self._failed("returned a token that has ended since")
        # A copy: each raise appends to the traceback of the error that it raises.
        raise AuthenticationError(
            str(failure),
            mechanism=failure.mechanism,
            step=failure.step,
            reason=failure.reason,
        ) from failure.__cause__

    async def aclose(self) -> None:
        """End the refresh, and the call of the provider. May be called again."""
        self._is_closed = True
        self._token = None
        if self._supervisor is not None:
            await self._supervisor.aclose()

    def _ask(self) -> None:
        self._asking = asyncio.Event()
        if self._supervisor is None:
            self._supervisor = Supervisor(f"tokens of {self._name}", self._crashed)
            self._supervisor.start(self._keep)
        else:
            self._supervisor.start_soon(self._attempt, "get a token")

    def _crashed(self, error: BaseException) -> None:
        self._crash = error

    async def _keep(self) -> None:
        await self._attempt()
        while True:
            wait = self._refresh.due - _now()
            if wait > 0:
                await asyncio.sleep(min(wait, _LONGEST_SLEEP))
            # A caller without a token may have started a call already.
            elif self._asking is not None:
                await self._asking.wait()
            else:
                self._asking = asyncio.Event()
                await self._attempt()

    async def _attempt(self) -> None:
        asking = self._asking
        assert asking is not None
        try:
            await self._obtain()
        except AuthenticationError as failure:
            self._failure = failure
            self._refresh.failed(_now(), roll())
        finally:
            # Also if this task is cancelled: nobody would wake the callers otherwise.
            # None first, so that a woken caller can ask again.
            self._asking = None
            asking.set()

    async def _obtain(self) -> None:
        """Get a token from the provider, and check it.

        Raises:
            AuthenticationError: the provider failed, was late or returned no token.
        """
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                given = await self._call()
        except AuthenticationError:
            raise
        except Exception as error:
            if limit.expired():
                late = f"returned no token within {self._timeout:.3g} s"
                raise self._failed(late) from None
            # The text may quote the token: only the cause keeps it.
            raise self._failed(f"failed with {type(error).__name__}") from error
        problem = problem_of(given)
        if problem or not isinstance(given, Token):
            del given
            raise self._failed(problem)
        self._token, self._failure = given, None
        self._refresh.obtained(_now(), given.expires, roll())

    async def _call(self) -> object:
        try:
            call: object = self._provider()
            if inspect.isawaitable(call):
                return await call
        except BaseException as error:
            if not is_foreign(error):
                raise
            what = "ended with CancelledError, and nothing had cancelled it"
            raise self._failed(what) from None
        kind = type(call).__name__
        # Error reports may show the variables of this frame: a plain function may have
        # returned the token itself.
        del call
        raise self._failed(f"returned {kind}, no awaitable: make it async")

    def _failed(self, what: str) -> AuthenticationError:
        return no_token(f"sasl_oauth_token_provider {self._name} {what}")


def _now() -> float:
    return wall_ms() / 1000


def no_token(what: str, reason: str = "") -> AuthenticationError:
    """Make the error for a token that could not be got; ``what`` says why."""
    return AuthenticationError(
        what, mechanism="OAUTHBEARER", step="get a token", reason=reason
    )


def name_of(function: object) -> str:
    """Return the name of a user's function, or of the class of a callable object."""
    return getattr(function, "__qualname__", type(function).__qualname__)


def is_token(text: str) -> bool:
    """Return whether a text can be sent as a token: printable ASCII without spaces."""
    # The message of OAUTHBEARER divides its fields by control characters (RFC 7628).
    return bool(text) and all("!" <= character <= "~" for character in text)


def problem_of(given: object) -> str:
    """Return what is wrong with a provider's result; empty for a usable token."""
    if not isinstance(given, Token):
        return f"returned {type(given).__name__}, and not Token"
    value: object = given.value
    if not isinstance(value, str):
        return f"returned a token of type {type(value).__name__}"
    if not value:
        return "returned an empty token"
    if not is_token(value):
        return "returned a token with spaces, line breaks or characters beyond ASCII"
    expires: object = given.expires
    if not isinstance(expires, int | float) or not math.isfinite(expires):
        return "returned a token whose end is not a number of seconds"
    late = _now() - expires
    if late >= 0:
        return f"returned a token that expired {late:.3g} s ago"
    extensions: object = given.extensions
    if not isinstance(extensions, Mapping) or not all(
        isinstance(text, str) for pair in extensions.items() for text in pair
    ):
        return "returned extensions that are not texts by name"
    return ""
