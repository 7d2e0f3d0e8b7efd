"""Turns of the loop for the others, taken by who always has something to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafkaio._runtime.clock import now

__all__ = ["Turns"]

#: Seconds to run before the loop gets a turn.
_SLICE: Final = 0.001


class Turns:
    """When a reader that has data at hand must let heartbeats have their turn."""

    __slots__ = ("_clock", "_slice_end")

    def __init__(self) -> None:
        # The loop's clock, once there is a loop: to ask for the loop takes longer.
        self._clock: Callable[[], float] = now
        self._slice_end = 0.0

    def start(self) -> None:
        """Use the clock of the loop that runs now."""
        self._clock = asyncio.get_running_loop().time

    @property
    def is_due(self) -> bool:
        """Whether the loop should get a turn."""
        return self._clock() >= self._slice_end

    async def give_way(self) -> None:
        """Let the loop have a turn."""
        await asyncio.sleep(0)
        self.had_one()

    def had_one(self) -> float:
        """The loop had a turn just now; returns its time."""
        moment = self._clock()
        self._slice_end = moment + _SLICE
        return moment
