"""Finds coordinators: one lookup is in flight, and the next one has all other keys.

A group, a transactional id or a share group has a coordinator, which any broker can
name (FindCoordinator). Keys that are needed during a lookup wait for the next one, and
go into one request if the broker supports KIP-699. Keys that will be needed later can
be announced (`CoordinatorFinder.expect`): the next lookup takes them along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final

from kafkaio._client.metadata import MetadataUpdater
from kafkaio._client.nodes import ASKED, SILENCE, Nodes
from kafkaio._client.retry import race
from kafkaio._machines.coordinators import (
    CoordinatorCache,
    CoordinatorKind,
    Found,
    NotFound,
    find_request,
    read_answer,
)
from kafkaio._net.connection import Connection
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._requests import request_type

_Key = tuple[CoordinatorKind, str]
#: The most keys that are looked up before they are needed.
_EXPECTED: Final = 100


class CoordinatorFinder:
    """Finds coordinators and remembers them.

    Args:
        nodes: the brokers to ask.
        metadata: is refreshed when a coordinator is a broker that it does not list.
        request_timeout: seconds for one lookup.

    Attributes:
        cache: the coordinators that are known.
    """

    def __init__(
        self, nodes: Nodes, metadata: MetadataUpdater, request_timeout: float
    ) -> None:
        self.cache: CoordinatorCache = CoordinatorCache()
        self._nodes = nodes
        self._metadata = metadata
        self._timeout = request_timeout
        self._wakeup = Wakeup()
        # In the order of the calls. Invariant: a future is removed when its lookup has
        # ended, or at the next lookup if its caller was cancelled.
        self._waiting: dict[_Key, list[asyncio.Future[int]]] = {}
        # Keys to look up together with others, without a request of their own.
        self._expected: dict[_Key, None] = {}
        self._failure: Callable[[], Exception] | None = None
        # The connections of the lookup in flight, including one that hangs.
        self._asking: list[Connection] = []

    def why_late(self) -> str:
        """Return what the lookup in flight waits for, for error messages."""
        for connection in self._asking:
            return connection.why_late("FindCoordinator")
        return self._nodes.why_late()

    async def find(self, kind: CoordinatorKind, key: str) -> int:
        """Return the coordinator's node id; looks it up once if it is not known.

        Raises:
            BrokerError: no broker could name it, perhaps only for now.
            NetworkError: no broker could be asked.
            UnsupportedVersion: the brokers do not know this kind of coordinator.
        """
        known = self.cache.get(kind, key)
        if known is not None:
            return known
        if self._failure is not None:
            raise self._failure()
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault((kind, key), [])
        waiting.append(future)
        self._wakeup.notify()
        return await future

    def expect(self, kind: CoordinatorKind, keys: Iterable[str]) -> None:
        """Take keys along with the next lookup of the kind.

        Args:
            kind: the kind of the keys.
            keys: the keys, at most the first hundred; they replace earlier ones.
        """
        kept = {known: None for known in self._expected if known[0] is not kind}
        for key in islice(keys, _EXPECTED):
            if self.cache.get(kind, key) is None:
                kept[kind, key] = None
        self._expected = kept

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail all waiting calls of `find`, and all later ones."""
        self._failure = self._failure or failure
        for key in tuple(self._waiting):
            self._end(key, failure())

    async def run(self) -> None:
        """Look up coordinators that calls of `find` wait for, until cancelled."""
        while True:
            await self._wakeup.wait()
            while keys := self._next_keys():
                await self._look_up(*keys)

    def _next_keys(self) -> tuple[CoordinatorKind, list[str]] | None:
        """Return the kind that has waited longest, and all of its keys."""
        # Futures that are done belong to callers that were cancelled.
        self._waiting = {
            key: left
            for key, futures in self._waiting.items()
            if (left := [f for f in futures if not f.done()])
        }
        for kind, _ in self._waiting:
            # Keys that a call waits for come first: a broker without KIP-699 is asked
            # for the first key only.
            keys = [key for other, key in self._waiting if other is kind]
            keys += [key for other, key in self._expected if other is kind]
            self.expect(kind, ())
            return kind, list(dict.fromkeys(keys))
        return None

    async def _look_up(self, kind: CoordinatorKind, keys: list[str]) -> None:
        # A broker that hangs keeps its connection open: only another one can answer.
        ask = partial(self._ask, kind, keys, set[int]())
        answers, failures = await race([ask] * ASKED, SILENCE)
        if not answers:
            for key in keys:
                self._end((kind, key), failures[0])
            return
        for outcome in answers[0]:
            if isinstance(outcome, Found):
                self._learn(kind, outcome)
            else:
                what = f"{kind.name.lower()} {outcome.key!r}: find its coordinator"
                detail = f"{what}: {outcome.message}" if outcome.message else what
                error = broker_error(
                    outcome.error,
                    detail,
                    api=apis.FIND_COORDINATOR,
                    group=outcome.key,
                    transactional_id=outcome.key,
                )
                self._end((kind, outcome.key), error)

    async def _ask(
        self, kind: CoordinatorKind, keys: list[str], asked_nodes: set[int]
    ) -> list[Found | NotFound]:
        connection = await self._nodes.any_connection(asked_nodes)
        asked_nodes.add(connection.node_id)
        version = connection.versions.usable(request_type(apis.FIND_COORDINATOR))
        if version < kind.least_version:
            what = kind.name.lower()
            raise UnsupportedVersion(f"the broker does not support {what} coordinators")
        request, asked = find_request(kind, keys, version)
        self._asking.append(connection)
        try:
            response = await connection.call(
                request, timeout=self._timeout, max_version=version
            )
        finally:
            self._asking.remove(connection)
        return read_answer(response, asked, version)

    def _learn(self, kind: CoordinatorKind, found: Found) -> None:
        broker = found.broker
        if self._nodes.known.get(broker.node_id) is None:
            # The metadata is older than the answer. Add the broker, so that requests to
            # the coordinator need not wait for newer metadata.
            self._nodes.update({**self._nodes.known, broker.node_id: broker})
            self._metadata.request()
        self.cache.learn(kind, found.key, broker.node_id)
        for future in self._waiting.pop((kind, found.key), ()):
            if not future.done():
                future.set_result(broker.node_id)

    def _end(self, key: _Key, error: Exception) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_exception(error)
