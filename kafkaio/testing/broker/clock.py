"""What time it is for a broker: the loop's clock and the wall's, both replaceable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkaio._runtime.clock import now, wall_ms

__all__ = ["Clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks.

    Attributes:
        now: seconds on the running loop's monotonic clock; timers follow it.
        wall_ms: milliseconds since the Unix epoch; timestamps follow it.
    """

    now: Callable[[], float] = now
    wall_ms: Callable[[], int] = wall_ms
