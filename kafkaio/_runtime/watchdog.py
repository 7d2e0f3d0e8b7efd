"""Notices when some code blocks the event loop: no heartbeat goes out meanwhile."""

from __future__ import annotations

import asyncio
from typing import Final

from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer

__all__ = ["watch_loop"]

#: Seconds between two looks. What blocks for less may go unseen.
INTERVAL: Final = 0.1
#: Seconds of delay that are not worth a word.
TOLERANCE: Final = 0.1


async def watch_loop(observer: Observer) -> None:
    """Tell an observer whenever the loop did not turn for a while; never returns.

    The seconds that it tells are a lower bound, up to ``INTERVAL`` too few. Where
    nobody listens, as ``guarded`` made the observer, the call returns at once and
    costs no wake-ups.
    """
    if "loop_blocked" not in vars(observer):
        return
    while True:
        due = now() + INTERVAL
        await asyncio.sleep(INTERVAL)
        late = now() - due
        if late > TOLERANCE:
            observer.loop_blocked(late)
