"""How long a task that always has data at hand may run before it yields to the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from kafkaio._runtime.clock import now

#: Seconds to run before the task yields.
SLICE: Final = 0.001
#: Seconds beyond its end after which a slice counts as blocked by code that does not
#: wait. A task that was only late loses little by a few turns of the loop.
_BLOCKED: Final = 0.2
#: Turns of the loop after such a slice. A heartbeat takes some: its timer, the task
#: that decides on it, and the task that sends it.
_TURNS: Final = 8


class TimeSlice:
    """Says when a reader must yield, so that heartbeats and fetches can run.

    A reader that always finds records never waits, and the event loop runs no other
    task meanwhile. A reader that did wait has given the others their time: `renew`.

    Where several tasks share a slice, each calls `woken` when it has waited, and
    `take_turn` to yield. They go on in the order in which they yielded, one in a turn
    of the loop: if each of them blocks for long, the loop has a turn after each, and
    not after all.

    Args:
        clock: the time in seconds; None takes the clock of the running loop.

    Attributes:
        clock: reads the time.
        end: when the task should yield.
    """

    __slots__ = (
        "_is_passing_on",
        "_turns",
        "_waiting",
        "_was_woken",
        "clock",
        "end",
    )

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        # The loop's clock, once there is a loop: asking for the loop takes longer.
        self.clock: Callable[[], float] = clock or now
        self.end: float = 0.0
        self._waiting = deque[asyncio.Future[None]]()
        # Turns that the loop is still to have before the next one goes on.
        self._turns = 0
        self._is_passing_on = False
        # Whether a task that was woken has begun a slice in this turn of the loop.
        self._was_woken = False

    def start(self) -> None:
        """Use the clock of the running loop from now on."""
        self.clock = asyncio.get_running_loop().time

    @property
    def is_over(self) -> bool:
        """Whether the task should yield."""
        return self.clock() >= self.end

    async def give_way(self) -> None:
        """Begin another slice, when the loop has run the other tasks."""
        for _ in range(self._due_turns()):
            await asyncio.sleep(0)
        self.renew()

    def _due_turns(self) -> int:
        return _TURNS if self.clock() >= self.end + _BLOCKED else 1

    async def take_turn(self) -> None:
        """Begin another slice, after the tasks that share it and called before."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._is_passing_on:
            self._is_passing_on = True
            self._pass_on_later()
        await turn

    def _pass_on_later(self) -> None:
        self._turns = self._due_turns()
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        loop = asyncio.get_running_loop()
        self._turns -= 1
        if self._turns > 0:
            loop.call_soon(self._pass_on)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else its task was cancelled
                self.renew()
                turn.set_result(None)
                # It is called behind the task that goes on: how long that took counts.
                loop.call_soon(self._passed_on)
                return
        self._is_passing_on = False

    def _passed_on(self) -> None:
        if self._waiting:
            self._pass_on_later()
        else:
            self._is_passing_on = False

    def woken(self) -> None:
        """Begin another slice, unless others are at work in the present one.

        Called by a task that shares the slice, and has waited. Events wake many such
        tasks in one turn of the loop, and the time that earlier ones took counts. Tasks
        that yielded before go on before it.
        """
        if self.is_over and not (self._was_woken or self._waiting):
            self._was_woken = True
            self.renew()
            asyncio.get_running_loop().call_soon(self._turn_over)

    def _turn_over(self) -> None:
        self._was_woken = False

    def renew(self) -> float:
        """Begin another slice, because the loop ran other tasks; return the time."""
        clock = self.clock
        moment = clock()
        self.end = moment + SLICE
        return moment
