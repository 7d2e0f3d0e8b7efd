"""``SchemaRegistry``: a schema registry in the event loop, for tests."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import ssl
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from kafkaio._public import public
from kafkaio._runtime.loop import running_loop
from kafkaio.registry._schema import CompatibilityLevel
from kafkaio.testing._registry.api import (
    Answer,
    Request,
    answer,
    refused,
    split_target,
)
from kafkaio.testing._registry.errors import Refusal, unauthorized
from kafkaio.testing._registry.faults import RegistryFaults, RegistryRule, matcher
from kafkaio.testing._registry.http import Exchange, HttpServer
from kafkaio.testing._registry.store import GivenSchema, Reference, SchemaStore

if TYPE_CHECKING:
    from kafkaio.registry import RegisteredSchema, Schema

_JSON: Final = "application/vnd.schemaregistry.v1+json"
_LOGGED: Final = 10_000
_IDS: Final = "/schemas/ids/"


@public("kafkaio.testing")
@dataclass(slots=True, eq=False)
class RegistryRequest:
    """A request that a registry has received.

    Attributes:
        method: the method of HTTP.
        path: the path, without the parameters.
        query: the parameters behind it.
        headers: the headers, by their names in lower case.
        body: the body.
        status: the status of the answer; None while there is none.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    status: int | None = None


@public("kafkaio.testing")
class SchemaRegistry:
    """A schema registry in the running event loop, with the API of Confluent's.

    Any client of such a registry can use it. It has the rules of compatibility of all
    three languages, soft and permanent deletion, references, ids and GUIDs. Its state
    is in memory; it outlives ``stop`` and ``start``, which keep the port. It runs as an
    async context manager::

        async with SchemaRegistry() as registry:
            registry.register("orders-value", Schema('"string"'))
            url = registry.url  # for any client

    Needs the package h11, which ``kafkaio[registry]`` installs.

    Args:
        port: the port on 127.0.0.1; 0 takes a free one.
        compatibility: the level of all subjects that have none of their own.
        users: passwords by user; a client that does not give one of them by HTTP's
            basic authentication is refused. None lets everybody in.
        tokens: bearer tokens that let a client in as well.
        tls: the TLS settings; None for plain HTTP.

    Attributes:
        faults: makes requests fail.
        requests: the last 10,000 requests, oldest first.
        users: may be changed at any time.
        tokens: likewise.

    Raises:
        ValueError: there is no such level.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        compatibility: CompatibilityLevel = "BACKWARD",
        users: Mapping[str, str] | None = None,
        tokens: Collection[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.faults: RegistryFaults = RegistryFaults()
        self.requests: deque[RegistryRequest] = deque(maxlen=_LOGGED)
        self.users: dict[str, str] = dict(users or {})
        self.tokens: set[str] = set(tokens)
        self._is_guarded = bool(users is not None or tokens)
        self._scheme = "http" if tls is None else "https"
        self._store = SchemaStore()
        self._server = HttpServer(self._serve, port, tls)
        self._waiters: set[asyncio.Future[None]] = set()
        self.set_compatibility(compatibility)

    def __repr__(self) -> str:
        state = self.url if self._server.is_open else "stopped"
        return f"<SchemaRegistry {state} subjects={len(self._store.subjects())}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Its address, such as ``http://127.0.0.1:8081``.

        Raises:
            RuntimeError: it was never started.
        """
        if not self._server.port:
            raise RuntimeError("the registry has not been started")
        return f"{self._scheme}://127.0.0.1:{self._server.port}"

    async def start(self) -> None:
        """Listen. Nothing happens if it does.

        Raises:
            OSError: the port is taken.
            ImportError: h11 is not installed.
        """
        running_loop()
        if not self._server.is_open:
            await self._server.open()

    async def stop(self) -> None:
        """Stop listening, and close each connection; what it knows stays."""
        self._server.close()
        self.faults.forget_held()

    def disconnect(self) -> None:
        """Close each connection; clients can connect again."""
        self._server.disconnect()

    # ---- without HTTP ----------------------------------------------------------------

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Register a schema without a request.

        Args:
            subject: the subject.
            schema: the schema.

        Raises:
            ValueError: it cannot be parsed, or breaks the compatibility.
        """
        from kafkaio.registry import RegisteredSchema, Schema

        references = tuple(
            Reference(each.name, each.subject, each.version)
            for each in schema.references
        )
        given = GivenSchema(schema.text, schema.type, references)
        try:
            version = self._store.register(subject, given)
        except Refusal as refusal:
            raise ValueError(refusal.message) from refusal
        stored = version.schema
        kept = Schema(stored.given.text, schema.type, schema.references)
        return RegisteredSchema(subject, version.number, stored.id, kept, stored.guid)

    def set_compatibility(self, level: CompatibilityLevel, subject: str = "") -> None:
        """Set the level of a subject, or of all that have none of their own.

        Args:
            level: ``NONE``, ``BACKWARD``, ``FORWARD``, ``FULL``, or one of the last
                three with ``_TRANSITIVE``.
            subject: the subject; empty for all.

        Raises:
            ValueError: there is no such level.
        """
        try:
            self._store.set_level(level, subject)
        except Refusal as refusal:
            raise ValueError(refusal.message) from refusal

    def subjects(self) -> list[str]:
        """The names of the subjects, in order."""
        return self._store.subjects()

    def count(self, request: str) -> int:
        """The number of requests so far, of the last 10,000.

        Args:
            request: method and path, as for `RegistryFaults.on`.

        Raises:
            ValueError: it is not a method and a path.
        """
        matches = matcher(request)
        return sum(matches(each.method, each.path) for each in self.requests)

    async def wait_for(
        self, request: str, count: int = 1, *, timeout: float = 60.0
    ) -> None:
        """Wait until so many requests have come, those before the call included.

        Args:
            request: method and path, as for `RegistryFaults.on`.
            count: their number.
            timeout: seconds to wait.

        Raises:
            TimeoutError: they did not come in time.
            ValueError: ``request`` is not a method and a path.
        """
        async with asyncio.timeout(timeout):
            while self.count(request) < count:
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiters.discard(waiter)

    # ---- requests --------------------------------------------------------------------

    def _serve(self, exchange: Exchange) -> None:
        given = exchange.request
        path, query = split_target(given.target)
        logged = RegistryRequest(given.method, path, query, given.headers, given.body)
        self.requests.append(logged)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        rule = self.faults.find(given.method, path)
        if rule is None:
            self._answer(exchange, logged, None)
        elif rule.hang:
            self.faults.hold(rule, lambda: self._answer(exchange, logged, rule))
        elif rule.delay > 0:
            loop = asyncio.get_running_loop()
            loop.call_later(rule.delay, self._answer, exchange, logged, rule)
        else:
            self._answer(exchange, logged, rule)

    def _answer(
        self, exchange: Exchange, logged: RegistryRequest, rule: RegistryRule | None
    ) -> None:
        if rule is not None and rule.disconnect == "before":
            exchange.disconnect()
            return
        found = self._find_answer(logged, rule)
        if rule is not None and rule.disconnect == "after":
            exchange.disconnect()
            return
        if exchange.is_open:
            logged.status = found.status
        headers = [("Content-Type", _JSON), *found.headers]
        exchange.answer(found.status, headers, found.body)

    def _find_answer(
        self, logged: RegistryRequest, rule: RegistryRule | None
    ) -> Answer:
        if not self._lets_in(logged.headers.get("authorization", "")):
            return refused(unauthorized())
        if rule is not None and rule.status is not None:
            return _failure(rule, rule.status)
        path = logged.path
        if rule is not None and rule.schema_id is not None and path.startswith(_IDS):
            _, _, rest = path.removeprefix(_IDS).partition("/")
            path = f"{_IDS}{rule.schema_id}" + (f"/{rest}" if rest else "")
        request = Request(logged.method, path, logged.query, logged.body)
        found = answer(self._store, request)
        return found if rule is None else _falsified(found, rule)

    def _lets_in(self, authorization: str) -> bool:
        if not self._is_guarded:
            return True
        kind, _, value = authorization.partition(" ")
        if kind.lower() == "bearer":
            return any(_is_equal(value, token) for token in self.tokens)
        if kind.lower() != "basic":
            return False
        try:
            pair = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return False
        user, _, password = pair.partition(":")
        return user in self.users and _is_equal(password, self.users[user])


def _is_equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _failure(rule: RegistryRule, status: int) -> Answer:
    code = status if rule.code is None else rule.code
    found = refused(Refusal(status, code, rule.message or f"HTTP {status}"))
    return _falsified(found, rule)


def _falsified(found: Answer, rule: RegistryRule) -> Answer:
    """Return an answer as a rule wants it."""
    if rule.retry_after is not None:
        found = replace(found, headers=(("Retry-After", f"{rule.retry_after:g}"),))
    if rule.body is not None:
        return replace(found, body=rule.body)
    if rule.schema_id is not None:
        document = json.loads(found.body)
        if isinstance(document, dict) and "id" in document:
            document["id"] = rule.schema_id
            return replace(found, body=json.dumps(document).encode())
    return found
