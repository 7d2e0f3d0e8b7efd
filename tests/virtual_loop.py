"""An event loop whose clock jumps to the next timer instead of waiting for it.

Only for tests whose I/O stays on this loop (the in-memory network): the clock cannot
know that a thread or another process is about to answer. A test that waits for what
never comes fails at once instead of hanging.

To opt in, a conftest.py imports ``pytest_asyncio_loop_factories`` from here.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping

import pytest


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """``loop.time()`` is simulated; ready callbacks run exactly as on the real loop."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self._advance))

    def time(self) -> float:
        return self._now

    def _advance(self, seconds: float) -> None:
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: no timer is armed and nothing can be read")
        self._advance(timeout)
        return ready


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run every asynchronous test below the importing conftest.py on virtual time."""
    del config, item
    return {"virtual": VirtualClockLoop}
