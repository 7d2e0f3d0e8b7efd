"""Detects code that blocks the event loop: no heartbeat is sent meanwhile.

The watching task sleeps for short intervals and notes when it wakes up late. Only
another thread can see what the loop's thread does at that time, so a thread takes the
stack: once for each time that the task is overdue.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import BLOCKED_FROM, Observer

#: Seconds between two checks. A shorter block may go unseen.
INTERVAL: Final = 0.1


async def watch_loop(observer: Observer) -> None:
    """Report to an observer whenever the loop was blocked; never returns.

    The reported seconds are a lower bound, up to ``INTERVAL`` too few. The stack is
    that of the loop's thread when the delay was noticed. If no observer has
    ``loop_blocked``, the call returns at once, without a thread and wake-ups.
    """
    if "loop_blocked" not in vars(observer):
        return
    sampler = _StackSampler(asyncio.get_running_loop().time)
    sampler.start()
    try:
        while True:
            due = sampler.expect(now() + INTERVAL)
            await asyncio.sleep(INTERVAL)
            late = now() - due
            if late > BLOCKED_FROM:
                observer.loop_blocked(late, sampler.stack)
    finally:
        sampler.stop()


class _StackSampler(threading.Thread):
    """Takes the stack of its creator's thread, once each time that it is overdue.

    Args:
        clock: returns the loop's time, in any thread.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(name="kafkaio watchdog", daemon=True)
        self._clock = clock
        self._watched = threading.get_ident()
        self._stopped = threading.Event()
        # Each of these is written by one thread only: the time that the watched thread
        # announced, and the last such time that it missed, with its stack then.
        self._due = float("inf")
        self._seen: tuple[float, str] = (0.0, "")

    def expect(self, due: float) -> float:
        """Note that the watched thread will call again at ``due``; return it."""
        self._due = due
        return due

    @property
    def stack(self) -> str:
        """The stack at the time that was missed; empty if none was taken."""
        due, stack = self._seen
        return stack if due == self._due else ""

    def stop(self) -> None:
        """Stop sampling; the thread ends by itself, at once."""
        self._stopped.set()

    def run(self) -> None:
        """Check until ``stop``."""
        while not self._stopped.wait(INTERVAL):
            due = self._due
            if self._clock() - due <= BLOCKED_FROM or self._seen[0] == due:
                continue
            frame = sys._current_frames().get(self._watched)
            if frame is not None:
                self._seen = due, "".join(traceback.format_stack(frame))
