"""Notices when code blocks the event loop, and which: no heartbeat goes out then."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer

__all__ = ["TOLERANCE", "watch_loop"]

#: Seconds between two looks. What blocks for less may go unseen.
INTERVAL: Final = 0.1
#: Seconds of delay that are not worth a word.
TOLERANCE: Final = 0.1


async def watch_loop(observer: Observer) -> None:
    """Tell an observer whenever the loop did not turn for a while; never returns.

    The seconds that it tells are a lower bound, up to ``INTERVAL`` too few. The stack
    is what the loop's thread was doing when that was noticed, seen from a thread that
    exists for this alone. Where nobody listens, as ``guarded`` made the observer, the
    call returns at once: there is no thread, and there are no wake-ups.
    """
    if "loop_blocked" not in vars(observer):
        return
    witness = _Witness(asyncio.get_running_loop().time)
    witness.start()
    try:
        while True:
            due = witness.expect(now() + INTERVAL)
            await asyncio.sleep(INTERVAL)
            late = now() - due
            if late > TOLERANCE:
                observer.loop_blocked(late, witness.stack)
    finally:
        witness.leave()


class _Witness(threading.Thread):
    """Looks at the thread that made it, once each time that it is overdue.

    Args:
        clock: tells the time in any thread.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(name="kafkaio watchdog", daemon=True)
        self._clock = clock
        self._suspect = threading.get_ident()
        self._left = threading.Event()
        # Each is written by one thread only: when the suspect said that it would be
        # back, and which of these times it let pass, doing what.
        self._due = float("inf")
        self._seen: tuple[float, str] = (0.0, "")

    def expect(self, due: float) -> float:
        """The suspect will be back at ``due``, a time of the clock."""
        self._due = due
        return due

    @property
    def stack(self) -> str:
        """What the suspect was doing when it should have been back; may be empty."""
        due, stack = self._seen
        return stack if due == self._due else ""

    def leave(self) -> None:
        """Look no more; the thread ends by itself, at once."""
        self._left.set()

    def run(self) -> None:
        """Look until ``leave``."""
        while not self._left.wait(INTERVAL):
            due = self._due
            if self._clock() - due <= TOLERANCE or self._seen[0] == due:
                continue
            frame = sys._current_frames().get(self._suspect)
            if frame is not None:
                self._seen = due, "".join(traceback.format_stack(frame))
