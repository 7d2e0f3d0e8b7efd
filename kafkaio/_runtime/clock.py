"""The clock and the dice: the only place that asks for either.

A simulation puts its own in their place with ``replaced``; the loop's clock it
replaces with the loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from kafkaio._dataclass import dataclass

__all__ = ["now", "random_uuid", "replaced", "roll", "wall_clock", "wall_ms"]


@dataclass(slots=True)
class _Sources:
    wall_ns: Callable[[], int]
    roll: Callable[[], float]
    bits: Callable[[int], int]


_sources = _Sources(time.time_ns, random.random, random.getrandbits)  # noqa: S311


def now() -> float:
    """Seconds on the running loop's monotonic clock; only differences mean anything."""
    return asyncio.get_running_loop().time()


def wall_clock() -> Callable[[], int]:
    """The clock that tells nanoseconds since the Unix epoch.

    For those who ask it for every record: what is told is the clock of now.
    """
    return _sources.wall_ns


def wall_ms() -> int:
    """Milliseconds since the Unix epoch, as record timestamps have them."""
    return _sources.wall_ns() // 1_000_000


def roll() -> float:
    """A random number in [0, 1), for jitter; not for secrets."""
    return _sources.roll()


def random_uuid() -> UUID:
    """A random id (RFC 9562, version 4); not for secrets."""
    return UUID(int=_sources.bits(128), version=4)


@contextmanager
def replaced(wall_ns: Callable[[], int], dice: random.Random) -> Iterator[None]:
    """Let all of the process take the time of day and its dice from elsewhere.

    Args:
        wall_ns: tells nanoseconds since the Unix epoch.
        dice: thrown for every random number; the same seed gives the same numbers.
    """
    before = _sources.wall_ns, _sources.roll, _sources.bits
    _sources.wall_ns = wall_ns
    _sources.roll, _sources.bits = dice.random, dice.getrandbits
    try:
        yield
    finally:
        _sources.wall_ns, _sources.roll, _sources.bits = before
