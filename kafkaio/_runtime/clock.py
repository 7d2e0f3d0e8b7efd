"""The wall clock and random numbers: the only module that asks for either.

A simulation replaces both with `replaced`, and the loop's clock with its own loop.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._runtime.loop import running_loop

if TYPE_CHECKING:
    import random


@dataclass(slots=True)
class _Sources:
    wall_ns: Callable[[], int]
    roll: Callable[[], float]
    bits: Callable[[int], int]


def _system_bits(count: int) -> int:
    # Of the system: `random` takes a millisecond to load, for a few numbers.
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size)) >> (8 * size - count)


def _system_roll() -> float:
    return (int.from_bytes(os.urandom(7)) >> 3) / (1 << 53)


_sources = _Sources(time.time_ns, _system_roll, _system_bits)


def now() -> float:
    """Return the seconds on the running loop's monotonic clock.

    Raises:
        UsageError: no event loop of asyncio runs.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return running_loop().time()  # which says what runs instead


def wall_clock() -> Callable[[], int]:
    """Return the function that returns nanoseconds since the Unix epoch.

    For callers that ask for the time of every record. They get the clock that is in
    use now: a later `replaced` does not affect them.
    """
    return _sources.wall_ns


def wall_ms() -> int:
    """Return the milliseconds since the Unix epoch, as in record timestamps."""
    return _sources.wall_ns() // 1_000_000


def roll() -> float:
    """Return a random number in [0, 1), for jitter; not for secrets."""
    return _sources.roll()


def random_uuid() -> UUID:
    """Return a random id (RFC 9562, version 4); not for secrets."""
    return UUID(int=_sources.bits(128), version=4)


def is_replaced() -> bool:
    """Whether a simulation runs, in which nothing may take the time of the system."""
    return _sources.wall_ns is not time.time_ns


@contextmanager
def replaced(wall_ns: Callable[[], int], dice: random.Random) -> Iterator[None]:
    """Replace the wall clock and the random numbers of the whole process.

    Args:
        wall_ns: returns nanoseconds since the Unix epoch.
        dice: makes every random number; the same seed gives the same numbers.
    """
    before = _sources.wall_ns, _sources.roll, _sources.bits
    _sources.wall_ns = wall_ns
    _sources.roll, _sources.bits = dice.random, dice.getrandbits
    try:
        yield
    finally:
        _sources.wall_ns, _sources.roll, _sources.bits = before
