"""One timer that is set again and again, on any event loop.

It keeps its own time: ``call_at`` of uvloop returns a handle without ``when()`` where
the time is less than half a millisecond away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final


class Timer:
    """Calls a function at the earliest of the times that it was set to.

    It may fire early by the resolution of the loop's clock: the function asks for the
    time, and sets the timer again if it has nothing to do yet.

    Args:
        callback: called in the loop when the timer fires; the timer is unset then.
    """

    __slots__ = ("_callback", "_handle", "when")

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Final = callback
        self._handle: asyncio.Handle | None = None
        #: When it fires, by the loop's clock; ``inf`` while it is not set.
        self.when: float = inf

    def set(self, when: float) -> None:
        """Fire at ``when`` at the latest; does nothing if it fires before that.

        Callers on a hot path compare with the attribute ``when`` first.
        """
        if when >= self.when:
            return
        if self._handle is not None:
            self._handle.cancel()
        self.when = when
        self._handle = asyncio.get_running_loop().call_at(when, self._fire)

    def cancel(self) -> None:
        """Unset the timer. It can be set again."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.when = None, inf

    def _fire(self) -> None:
        self._handle, self.when = None, inf
        self._callback()
