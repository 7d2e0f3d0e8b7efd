"""An event loop whose clock jumps to the next timer instead of waiting for it.

An hour passes at once, and a hang becomes an error. Only for tests whose input and
output stay on the loop, on the in-memory network: the clock cannot know that a thread,
a socket or another process is about to answer. A ``conftest.py`` opts in by the hook
``pytest_asyncio_loop_factories``, which returns ``{"virtual": VirtualClockLoop}``.
"""

from __future__ import annotations

import asyncio
import selectors

__all__ = ["VirtualClockLoop"]


class _JumpingSelector(selectors.DefaultSelector):
    """Reports what is ready now; where nothing is, lets the time pass that remains."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: no timer is armed, nothing can be read")
            self.elapsed += max(timeout, 0.0)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """``loop.time()`` is simulated; everything else is asyncio's own loop."""

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.elapsed

    def pass_time(self, seconds: float) -> None:
        """Let time pass without a turn of the loop, as a blocking call does."""
        self._virtual.elapsed += seconds
