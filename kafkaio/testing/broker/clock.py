"""What time it is for a broker: the loop's clock and the wall's, and what was skipped.

Both can be replaced.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._runtime.clock import now, wall_ms

__all__ = ["Clock"]


class Clock:
    """Two clocks that can jump forward together.

    Args:
        now: seconds on a monotonic clock, that of the running loop.
        wall_ms: milliseconds since the Unix epoch.
    """

    __slots__ = ("_now", "_skipped", "_wall_ms")

    def __init__(
        self,
        now: Callable[[], float] = now,
        wall_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._now = now
        self._wall_ms = wall_ms
        self._skipped = 0.0

    def now(self) -> float:
        """Seconds on the monotonic clock; deadlines follow it."""
        return self._now() + self._skipped

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; timestamps follow them."""
        return self._wall_ms() + round(self._skipped * 1000)

    def skip(self, seconds: float) -> None:
        """Let both clocks jump forward.

        Raises:
            ValueError: if they would go back.
        """
        if seconds < 0:
            raise ValueError(f"skip_time({seconds}): time does not go back")
        self._skipped += seconds
