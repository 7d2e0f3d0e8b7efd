"""How long a task that always has data at hand may run before it yields to the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafkaio._runtime.clock import now

__all__ = ["TimeSlice"]

#: Seconds to run before the task yields.
_SECONDS: Final = 0.001


class TimeSlice:
    """Says when a reader must yield, so that heartbeats and fetches can run.

    A reader that always finds records never waits, and the event loop runs no other
    task meanwhile. A reader that did wait has given the others their time: `renew`.
    """

    __slots__ = ("_clock", "_end")

    def __init__(self) -> None:
        # The loop's clock, once there is a loop: asking for the loop takes longer.
        self._clock: Callable[[], float] = now
        self._end = 0.0

    def start(self) -> None:
        """Use the clock of the running loop from now on."""
        self._clock = asyncio.get_running_loop().time

    @property
    def is_over(self) -> bool:
        """Whether the task should yield."""
        return self._clock() >= self._end

    async def give_way(self) -> None:
        """Let the loop run the other tasks once, and begin another slice."""
        await asyncio.sleep(0)
        self.renew()

    def renew(self) -> float:
        """Begin another slice, because the loop ran other tasks; return the time."""
        moment = self._clock()
        self._end = moment + _SECONDS
        return moment
