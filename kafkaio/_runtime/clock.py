"""The clock and the dice: the only place that asks for either."""

from __future__ import annotations

import asyncio
import random
import time

__all__ = ["now", "roll", "wall_ms", "wall_ns"]


def now() -> float:
    """Seconds on the running loop's monotonic clock; only differences mean anything."""
    return asyncio.get_running_loop().time()


#: Nanoseconds since the Unix epoch, for those who ask for every record.
wall_ns = time.time_ns


def wall_ms() -> int:
    """Milliseconds since the Unix epoch, as record timestamps have them."""
    return time.time_ns() // 1_000_000


def roll() -> float:
    """A random number in [0, 1), for jitter; not for secrets."""
    return random.random()  # noqa: S311
