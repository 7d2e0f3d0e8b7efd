"""Finds coordinators: one lookup in flight, keys that come meanwhile share the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from kafkaio._machines.coordinators import (
    CoordinatorCache,
    CoordinatorKind,
    Found,
    NotFound,
    find_request,
    read_answer,
)
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.client.metadata import MetadataKeeper
from kafkaio.client.nodes import Nodes
from kafkaio.client.race import race
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol.api_keys import ApiKey, request_type
from kafkaio.protocol.broker_errors import broker_error

__all__ = ["CoordinatorFinder"]

_Key = tuple[CoordinatorKind, str]
#: How many brokers are asked, and the seconds that each gets before the next.
_ASKED: Final = 2
_HEAD_START: Final = 1.0


class CoordinatorFinder:
    """Knows which broker coordinates what.

    Args:
        nodes: where to ask.
        metadata: learns the address of a coordinator that it does not list yet.
        request_timeout: seconds for one lookup.
    """

    def __init__(
        self, nodes: Nodes, metadata: MetadataKeeper, request_timeout: float
    ) -> None:
        self.cache = CoordinatorCache()
        self._nodes = nodes
        self._metadata = metadata
        self._timeout = request_timeout
        self._wakeup = Wakeup()
        # In the order in which they came. Invariant: a future leaves when its lookup
        # has ended, or with the caller who was cancelled.
        self._waiting: dict[_Key, list[asyncio.Future[int]]] = {}
        self._failure: Callable[[], Exception] | None = None

    async def find(self, kind: CoordinatorKind, key: str) -> int:
        """The coordinator's node id, asking once if it is not known.

        Raises:
            BrokerError: no broker could tell, perhaps only for now.
            NetworkError: nobody could be asked.
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

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail all that wait now, and all that will."""
        self._failure = self._failure or failure
        for key in tuple(self._waiting):
            self._end(key, failure())

    async def run(self) -> None:
        """Look up what is waited for, until cancelled."""
        while True:
            await self._wakeup.wait()
            while keys := self._next_keys():
                await self._look_up(*keys)

    def _next_keys(self) -> tuple[CoordinatorKind, list[str]] | None:
        """The kind that has waited longest, and all its keys that are waited for."""
        self._waiting = {
            key: left
            for key, futures in self._waiting.items()
            if (left := [f for f in futures if not f.done()])
        }
        for kind, _ in self._waiting:
            return kind, [key for other, key in self._waiting if other is kind]
        return None

    async def _look_up(self, kind: CoordinatorKind, keys: list[str]) -> None:
        # A broker that has come to a halt answers nothing, and another one may.
        ask = partial(self._ask, kind, keys)
        answers, failures = await race([ask] * _ASKED, _HEAD_START)
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
                self._end((kind, outcome.key), broker_error(outcome.error, detail))

    async def _ask(
        self, kind: CoordinatorKind, keys: list[str]
    ) -> list[Found | NotFound]:
        connection = await self._nodes.any_connection()
        version = connection.versions.usable(request_type(ApiKey.FIND_COORDINATOR))
        if version < kind.least_version:
            what = kind.name.lower()
            raise UnsupportedVersion(f"the broker knows no {what} coordinators")
        request, asked = find_request(kind, keys, version)
        response = await connection.call(
            request, timeout=self._timeout, max_version=version
        )
        return read_answer(response, asked, version)

    def _learn(self, kind: CoordinatorKind, found: Found) -> None:
        broker = found.broker
        if self._nodes.known.get(broker.node_id) is None:
            # The metadata lags behind; connecting must not wait for it.
            self._nodes.learn({**self._nodes.known, broker.node_id: broker})
            self._metadata.request()
        self.cache.learn(kind, found.key, broker.node_id)
        for future in self._waiting.pop((kind, found.key), ()):
            if not future.done():
                future.set_result(broker.node_id)

    def _end(self, key: _Key, error: Exception) -> None:
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_exception(error)
