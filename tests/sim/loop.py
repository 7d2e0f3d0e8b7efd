"""An event loop whose clock jumps to the next timer instead of waiting for it.

An hour passes at once, and a hang becomes an error. Only for what keeps its input and
output on the loop, on the network in memory: the clock cannot know that a thread, a
socket or another process is about to answer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from contextvars import Context
from itertools import count
from typing import Any, Final

__all__ = ["VirtualClockLoop"]

#: Turns of the loop at one moment, after which nobody believes that it goes on.
_TURNS: Final = 50_000
#: The loop's own, by which other threads wake it.
_SELF_PIPE: Final = 1


class _JumpingSelector(selectors.DefaultSelector):
    """Reports what is ready now; where nothing is, lets the time pass that remains."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self._turns = 0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        # To ask the kernel costs more than a turn, and only tests of sockets need it.
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
    """A task whose place in a set does not depend on where it lies in memory."""

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

    Raises:
        RuntimeError: from running it, when nothing will ever happen any more, or
            things go on and on without any time passing.
    """

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Seconds of simulated time since the loop was made."""
        return self._virtual.elapsed

    def pass_time(self, seconds: float) -> None:
        """Let time pass without a turn of the loop, as a blocking call does."""
        self._virtual.elapsed += seconds
