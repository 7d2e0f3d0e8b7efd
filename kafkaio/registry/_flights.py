"""One request at a time for each key, whose answer all callers get.

Invariant: a request runs as long as somebody waits for it. A caller that is cancelled
ends its own wait alone; the last one ends the request. Only one that does not end when
it is cancelled runs on, and those who come meanwhile wait for it.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, TypeVar

from kafkaio._runtime.supervisor import start_detached
from kafkaio.errors import KafkaError, RegistryError

T = TypeVar("T")

#: Seconds to wait for a request that was cancelled.
_ENDING: Final = 1.0


class _Flight:
    """A request under way, and how it ended."""

    __slots__ = ("error", "results", "task", "waiters")

    def __init__(self) -> None:
        self.waiters = 0
        self.results: list[object] = []
        self.error: Exception | None = None
        self.task: asyncio.Task[None]

    async def run(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do the work. Its exception is kept: those who wait raise it, if any do."""
        try:
            self.results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised by each of those who wait
            self.error = error


class Flights:
    """The requests under way on one event loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _Flight] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def join(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Wait for the request of a key, which begins if none is under way.

        Args:
            key: callers of one key share a request.
            work: makes the coroutine of the request, which ends in bounded time.

        Raises:
            KafkaError: the error of the request, for each caller a copy.
        """
        flight = self._running.get(key) or self._start(key, work)
        flight.waiters += 1
        try:
            # Raises nothing of the task: a cancellation here is one of the caller.
            await asyncio.wait([flight.task])
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                # A caller that comes now begins anew.
                self._forget(key, flight)
                flight.task.cancel()
                # It closes its connection, and waits for nobody. But a user's provider
                # of tokens may go on: then it runs alone until it ends.
                await asyncio.wait([flight.task], timeout=_ENDING)
                if not flight.task.done():
                    self._running.setdefault(key, flight)
        if flight.results:
            value: T = flight.results[0]  # type: ignore[assignment]  # of this `work`
            return value
        raise _copied(flight.error)

    def _start(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, object]]
    ) -> _Flight:
        flight = _Flight()
        self._running[key] = flight
        flight.task = start_detached(flight.run(work), "kafkaio asks a schema registry")
        flight.task.add_done_callback(lambda task: self._ended(key, flight, task))
        return flight

    def _ended(self, key: Hashable, flight: _Flight, task: asyncio.Task[None]) -> None:
        self._forget(key, flight)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Of the kinds that end a program, such as KeyboardInterrupt: the loop has
            # raised it already.
            del error

    def _forget(self, key: Hashable, flight: _Flight) -> None:
        if self._running.get(key) is flight:
            del self._running[key]


def _copied(error: Exception | None) -> Exception:
    """Return an error to raise: each raise adds to the traceback of what it raises."""
    if error is None:
        return RegistryError(
            "the request was cancelled by something else than those who wait for it",
            retriable=True,
        )
    if not isinstance(error, KafkaError):
        return error
    copied = copy.copy(error)
    copied.__cause__ = error.__cause__
    copied.__suppress_context__ = True
    return copied
