"""Requests to a registry over HTTP, tried again within one time limit.

``Attempts`` decides which address is asked and when; this shell waits, sends and reads.
httpcore, the engine of httpx, speaks HTTP; connections are those of ``_streams.py``.

Invariants:

- Connections are open while requests are under way, or while they are held, and belong
  to one event loop. So a registry that nobody closes leaves nothing behind.
- A request that is cancelled, or late, closes its connection.
- No more than ``max_schema_bytes`` of an answer are kept.
- Errors of httpcore are never the cause or the context of ours: the frames of their
  tracebacks hold the headers, and so the login.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from importlib import import_module
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from kafkaio._dataclass import dataclass
from kafkaio._runtime.clock import now, roll, wall_ms
from kafkaio._version import __version__
from kafkaio.registry._address import Address, proxy_parts, secrets_of
from kafkaio.registry._answers import Reply, Where, error_of
from kafkaio.registry._attempts import Attempt, Attempts
from kafkaio.registry._flights import Flights
from kafkaio.registry._login import Login
from kafkaio.registry._streams import Dialler

if TYPE_CHECKING:
    import httpcore

LOG: Final = logging.getLogger("kafkaio.registry")
_ACCEPT: Final = (
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, "
    "application/json"
)
_CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_UNAUTHORIZED: Final = 401
#: Requests that are sent at once; more wait for one another.
_MOST_CONNECTIONS: Final = 100
#: Seconds after which a connection is closed that is held and not used.
_IDLE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Call:
    """A request of the registry's API.

    Attributes:
        method: the method of HTTP.
        path: the path behind the registry's URL, percent-encoded.
        query: parameters.
        body: the body, as JSON; empty for none.
        subject: the subject that it is about, for errors; empty for none.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    subject: str = ""

    @property
    def may_repeat(self) -> bool:
        """Whether it changes nothing when it is done twice."""
        # What is deleted already is an error. All other calls end as they did before.
        return self.method != "DELETE"

    def url(self, address: Address) -> str:
        """Return the whole URL."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{address.url}{self.path}{query}"


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as it is sent."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How a registry is reached; the same on every event loop.

    Attributes:
        addresses: where it is.
        timeout: seconds for one call with all its attempts.
        retries: rounds over all addresses that follow the first one.
        max_bytes: the largest answer.
        proxy: the URL of a proxy; None for none.
        context: returns the TLS settings of new connections.
    """

    addresses: tuple[Address, ...]
    timeout: float
    retries: int
    max_bytes: int
    proxy: str | None = field(repr=False)
    context: Callable[[], ssl.SSLContext]


class _Client:
    """The connections of one event loop: a pool for each way to the registry."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._httpcore = load_httpcore()
        self._dialler = Dialler(self._httpcore)
        # By the proxy; None for the direct way.
        self._pools: dict[str | None, httpcore.AsyncConnectionPool] = {}

    async def send(
        self, address: Address, request: _Request, connect_limit: float
    ) -> httpcore.Response:
        """Send a request; return its answer, whose body is not read yet."""
        extensions = {"timeout": {"connect": connect_limit}}
        made = self._httpcore.Request(
            request.method,
            self._httpcore.URL(request.url),
            headers=request.headers,
            content=request.body,
            extensions=extensions,
        )
        pool = self._pool(self._settings.proxy or address.proxy_of_environment())
        response: httpcore.Response = await pool.handle_async_request(made)
        return response

    async def aclose(self) -> None:
        """Close every connection; none is in use."""
        try:
            for pool in self._pools.values():
                await pool.aclose()
        finally:
            self._dialler.close()

    def _pool(self, proxy: str | None) -> httpcore.AsyncConnectionPool:
        pool = self._pools.get(proxy)
        if pool is None:
            pool = self._pools[proxy] = self._open(proxy)
        return pool

    def _open(self, proxy: str | None) -> httpcore.AsyncConnectionPool:
        options: dict[str, Any] = {
            "ssl_context": self._settings.context(),
            "max_connections": _MOST_CONNECTIONS,
            "keepalive_expiry": _IDLE_SECONDS,
            "network_backend": self._dialler,
        }
        if proxy is None:
            direct: httpcore.AsyncConnectionPool
            direct = self._httpcore.AsyncConnectionPool(**options)
            return direct
        url, login = proxy_parts(proxy)
        kind = self._httpcore.AsyncHTTPProxy
        if url.startswith("socks5"):
            kind = self._httpcore.AsyncSOCKSProxy
        pool: httpcore.AsyncConnectionPool
        pool = kind(proxy_url=url, proxy_auth=login, **options)
        return pool


class Connections:
    """The connections of one event loop, which are open while somebody uses them."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._client: _Client | None = None
        self._users = 0
        self._holds = 0

    def hold(self) -> None:
        """Keep connections open until `release` is called as often."""
        self._holds += 1

    async def release(self, *, every: bool = False) -> None:
        """Give up a hold, or all of them; what nobody uses is closed."""
        self._holds = 0 if every else max(self._holds - 1, 0)
        await self._close_unused()

    async def __aenter__(self) -> _Client:
        if self._client is None:
            self._client = _Client(self._settings)
        self._users += 1
        return self._client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._users -= 1
        await self._close_unused()

    async def _close_unused(self) -> None:
        client = self._client
        if client is not None and not self._users and not self._holds:
            # First: a request that begins meanwhile needs another one.
            self._client = None
            await client.aclose()


class Http:
    """Sends the calls of one registry, from any event loop.

    Args:
        settings: how it is reached.
        login: who asks.
    """

    def __init__(self, settings: HttpSettings, login: Login) -> None:
        self._settings = settings
        self._login = login
        # The address that answered last is asked first.
        self._good = 0
        self.requests = 0
        self.retries = 0

    @property
    def settings(self) -> HttpSettings:
        """How the registry is reached."""
        return self._settings

    def where(self, call: Call, address: Address | None = None) -> Where:
        """Return what is asked, for errors."""
        address = address or self._settings.addresses[self._good]
        secrets = (*self._login.secrets, *secrets_of(address.basic))
        return Where(f"{address.url}{call.path}", call.subject, secrets)

    async def ask(
        self, call: Call, connections: Connections, flights: Flights
    ) -> tuple[bytes, Where]:
        """Send a call; return the body of its answer, and what was asked.

        Raises:
            SchemaError: there is no such schema, or it is refused.
            RegistryError: there is no answer in time, or another refusal.
        """
        one = _Asking(self, call, flights)
        began = now()
        limit = asyncio.timeout(self._settings.timeout)
        try:
            async with limit, connections as client:
                reply = await one.run(client, began + self._settings.timeout)
        except TimeoutError:
            # A provider of tokens may raise one of its own.
            if not limit.expired():
                raise
            reply = one.last
        if not reply.is_success:
            # Outside of the handler, so that no error has another one as its context.
            tried = f"{one.made} attempts in {now() - began:.3g} s"
            raise error_of(reply, one.where, tried if one.made > 1 else "")
        return reply.body, one.where

    async def headers(self, address: Address, flights: Flights) -> dict[str, str]:
        """Return the headers of the next request to an address."""
        return await self._login.headers(flights, address.basic)

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Note that a login was refused; return whether to try another one."""
        return self._login.refused(headers)

    @property
    def first(self) -> int:
        """The address that is asked first."""
        return self._good

    def answered(self, address: int) -> None:
        """Note that an address has answered."""
        self._good = address


class _Asking:
    """One call: its attempts, one after the other."""

    def __init__(self, http: Http, call: Call, flights: Flights) -> None:
        self._http = http
        self._call = call
        self._flights = flights
        self._settings = http.settings
        self.last = Reply(problem=f"no answer within {self._settings.timeout:g} s")
        self.where = http.where(call)
        #: How many requests were sent, to any address.
        self.made = 0

    async def run(self, client: _Client, deadline: float) -> Reply:
        """Return the answer, or the last failure."""
        settings = self._settings
        attempts = Attempts(
            len(settings.addresses), self._http.first, settings.retries, deadline
        )
        attempt: Attempt | None = attempts.begin(now())
        while attempt is not None:
            if attempt.wait:
                await asyncio.sleep(attempt.wait)
            reply = self.last = await self._log_in_and_send(client, attempt)
            is_unknown = reply.may_be_done and not self._call.may_repeat
            if not reply.may_pass or is_unknown:
                if not reply.problem:
                    self._http.answered(attempt.address)
                break
            # What is certain to come again leaves the other addresses.
            pause = math.inf if reply.is_final else _pause(reply.retry_after)
            attempt = attempts.failed(now(), roll(), pause)
            self._http.retries += attempt is not None
        return self.last

    async def _log_in_and_send(self, client: _Client, attempt: Attempt) -> Reply:
        address = self._settings.addresses[attempt.address]
        self.where = self._http.where(self._call, address)
        headers = await self._headers(address)
        reply = await self._send(client, address, headers, attempt)
        if reply.status == _UNAUTHORIZED and self._http.refused(headers):
            # The token was revoked before its end: a new one may do.
            headers = await self._headers(address)
            reply = await self._send(client, address, headers, attempt)
        return reply

    async def _headers(self, address: Address) -> dict[str, str]:
        headers = await self._http.headers(address, self._flights)
        # Again: a token may be new, and no error may show it.
        self.where = self._http.where(self._call, address)
        return headers

    async def _send(
        self,
        client: _Client,
        address: Address,
        headers: dict[str, str],
        attempt: Attempt,
    ) -> Reply:
        self._http.requests += 1
        self.made += 1
        began = now()
        limit = asyncio.timeout(attempt.limit)
        reply = Reply(problem=f"no answer within {attempt.limit:.3g} s")
        try:
            async with limit:
                request = self._request(address, headers)
                reply = await self._exchange(client, address, request, attempt)
        except TimeoutError:
            if not limit.expired():
                raise
        LOG.debug(
            "%s %s: %s in %.0f ms",
            self._call.method,
            self.where,
            reply.status or self.where.clean(reply.problem),
            (now() - began) * 1000,
        )
        return reply

    def _request(self, address: Address, headers: dict[str, str]) -> _Request:
        body = self._call.body
        given = {
            "Host": address.netloc,
            "User-Agent": f"kafkaio/{__version__}",
            "Accept": _ACCEPT,
            # No compression, so that a small answer cannot become a large one.
            "Accept-Encoding": "identity",
            **headers,
        }
        if body or self._call.method in {"POST", "PUT"}:
            given |= {"Content-Type": _CONTENT, "Content-Length": str(len(body))}
        encoded = [(name.encode(), value.encode()) for name, value in given.items()]
        return _Request(self._call.method, self._call.url(address), encoded, body)

    async def _exchange(
        self, client: _Client, address: Address, request: _Request, attempt: Attempt
    ) -> Reply:
        """Send a request once; return a failure as a reply with a problem."""
        library = load_httpcore()
        before = (library.ConnectError, library.ConnectTimeout, library.ProxyError)
        failures = (library.NetworkError, library.TimeoutException, *before)
        try:
            response = await client.send(address, request, attempt.connect_limit)
            try:
                return await _read(response, self._settings.max_bytes)
            finally:
                await response.aclose()
        except (*failures, library.ProtocolError, OSError) as error:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            is_connected = not isinstance(error, before)
        return Reply(
            problem=text,
            # A certificate that is not trusted will not be trusted a second later.
            is_final="CERTIFICATE_VERIFY_FAILED" in text,
            may_be_done=is_connected,
        )


async def _read(response: httpcore.Response, max_bytes: int) -> Reply:
    """Read an answer, or refuse one that is too large."""
    status = response.status
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in response.headers
    }
    if headers.get("content-encoding", "identity") != "identity":
        what = "the answer is compressed, which was not asked for"
        return Reply(status, problem=what, is_final=True)
    body = bytearray()
    # In chunks: `aread` would take any number of bytes into memory.
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > max_bytes:
            what = f"the answer has more than max_schema_bytes={max_bytes} bytes"
            return Reply(status, problem=what, is_too_large=True, is_final=True)
    return Reply(
        status,
        bytes(body),
        # What refuses by these does nothing else.
        may_be_done=status not in {429, 503},
        retry_after=headers.get("retry-after", ""),
        location=headers.get("location", ""),
    )


def _pause(retry_after: str) -> float:
    """Return the seconds of a header ``Retry-After``; 0 if it cannot be read."""
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:10])
    try:
        then = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return max(0.0, then - wall_ms() / 1000)


def load_httpcore() -> ModuleType:
    """Return httpcore, which httpx brings; it is loaded when it is first needed.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return import_module("httpcore")
    except ImportError as error:
        raise ImportError(
            "kafkaio.registry needs httpx; install it with: "
            "pip install 'kafkaio[registry]'"
        ) from error
