"""The life of a core in a thread of its own, for both consumers with ``io_thread``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.thread import LoopThread

T = TypeVar("T")
#: Fewest seconds that the thread has to end.
_ENDING: Final = 0.5


class CorePort(Protocol):
    """A core, as far as its life in a thread goes."""

    @property
    def life(self) -> Lifecycle:
        """The lifecycle."""
        ...

    async def start(self, within: float | None) -> None:
        """Start the core."""

    async def close(self, within: float | None) -> None:
        """Close the core."""

    def abandon(self) -> None:
        """End soon, and wait for nothing."""


class ThreadedLife:
    """Starts and closes a core in a thread, and calls into that thread.

    Args:
        thread: the I/O thread.
        core: the core, whose coroutines run in it.
        closing: seconds that closing may take, unless the caller sets another limit.
        after_start: seconds for closing after a start that failed.
    """

    def __init__(
        self, thread: LoopThread, core: CorePort, *, closing: float, after_start: float
    ) -> None:
        self._thread = thread
        self._core = core
        self._closing = closing
        self._after_start = after_start

    def ask(self, work: Callable[[], T]) -> T:
        """Call a function in the thread, and block until it has returned."""
        if self._thread.is_inside or not self._thread.is_running:
            return work()
        return self._thread.call_blocking(work)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Call a coroutine function in the thread, and wait for it."""
        if self._thread.is_inside or not self._thread.is_running:
            return await work()
        return await self._thread.call(work)

    async def start(self, within: float | None) -> None:
        """Start the thread, and the core in it."""
        self._thread.start()
        try:
            await self._thread.call(partial(self._core.start, within))
        except BaseException:
            await self._end_start()
            raise

    async def _end_start(self) -> None:
        # The core may run: its start can succeed while its caller is being cancelled.
        try:
            with CancelScope(shield=True), suppress(Exception):
                await self._thread.call(partial(self._core.close, self._after_start))
        finally:
            await self._thread.aclose(_ENDING)

    async def close(self, within: float | None) -> None:
        """Close the core, and join the thread.

        If the call is cancelled, however often, it returns when the core has ended.
        """
        thread, life = self._thread, self._core.life
        deadline = now() + (self._closing if within is None else within)
        try:
            await self.call(partial(self._core.close, within))
        except BaseException:
            if life.state is LifecycleState.CLOSING and not thread.is_inside:
                # This loop ends before the core does: nobody will join the thread.
                thread.abandon()
            raise
        finally:
            if life.state is LifecycleState.CLOSED:  # else another caller joins it
                await thread.aclose(max(_ENDING, deadline - now()))

    def abandon(self) -> None:
        """End soon, and wait for nothing: the consumer was collected while open."""
        self._core.abandon()
        self._thread.abandon()
