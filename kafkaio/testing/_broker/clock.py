"""The clocks of a broker: monotonic time and wall time, moved forward together."""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._public import public
from kafkaio._runtime.clock import now, wall_ms


@public("kafkaio.testing")
class Clock:
    """Two clocks that can jump forward together.

    Args:
        now: returns seconds on a monotonic clock; by default that of the running loop.
        wall_ms: returns milliseconds since the Unix epoch.
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
        """Seconds on the monotonic clock, for deadlines."""
        return self._now() + self._skipped

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch, for timestamps."""
        return self._wall_ms() + round(self._skipped * 1000)

    def skip(self, seconds: float) -> None:
        """Move both clocks forward.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        if seconds < 0:
            raise ValueError(f"skip_time({seconds}): time cannot go back")
        self._skipped += seconds
