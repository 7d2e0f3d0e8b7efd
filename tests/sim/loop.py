"""An event loop whose clock jumps to the next timer instead of waiting for it.

A simulated hour takes seconds, and a hang becomes an error. It is for code that keeps
its input and output on the loop, on a network in memory: the clock cannot know that a
thread, a socket or another process is about to answer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from contextvars import Context
from itertools import count
from typing import Any, Final

__all__ = ["VirtualClockLoop"]

#: Iterations of the loop without any time passing, after which it is a livelock.
_TURNS: Final = 50_000
#: The number of the loop's own sockets, by which other threads wake it.
_SELF_PIPE: Final = 1


class _JumpingSelector(selectors.DefaultSelector):
    """Reports what is ready; if nothing is, advances the clock to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self._turns = 0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        # A system call costs more than an iteration, and only tests of sockets need it.
        ready = super().select(0) if len(self.get_map()) > _SELF_PIPE else []
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: no timer is armed, nothing can be read")
        if timeout > 0:
            self.elapsed += timeout
            self._turns = 0
        self._turns += 1
        if self._turns > _TURNS:
            raise RuntimeError(f"livelock: time stands still at {self.elapsed:.3f} s")
        return ready


class _Task(asyncio.Task[Any]):
    """A task whose hash, and so its order in a set, does not depend on its address."""

    _numbers = count()

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        loop: asyncio.AbstractEventLoop,
        name: str | None = None,
        context: Context | None = None,
    ) -> None:
        self._number = next(self._numbers)
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """``loop.time()`` is simulated; everything else is asyncio's own loop.

    It is never in debug mode by PYTHONASYNCIODEBUG. That writes a stack down for each
    callback, which takes three times as long as the tests, and tells which callbacks
    are slow by the real clock.

    Raises:
        RuntimeError: from running it, if no timer is armed and nothing can be read
            (deadlock), or if it runs on and on without any time passing (livelock).
    """

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)
        self.set_debug(False)

    def time(self) -> float:
        """Seconds of simulated time since the loop was made."""
        return self._virtual.elapsed

    def pass_time(self, seconds: float) -> None:
        """Advance the clock without running the loop, as a blocking call does."""
        self._virtual.elapsed += seconds
