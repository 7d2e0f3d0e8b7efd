"""One event, any number of waiters: what callers of a background loop wait on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Broadcast"]


class Broadcast:
    """Wakes all that wait, each time something happens; fails them once it cannot."""

    __slots__ = ("_failure", "_waiters")

    def __init__(self) -> None:
        # In the order in which they came, and in which they are woken.
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._failure: Callable[[], Exception] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    def tell(self) -> None:
        """Wake all that wait now."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail all that wait now, and all that will; the first failure stays.

        Args:
            failure: makes the exception, a new one for each that waits.
        """
        if self._failure is None:
            self._failure = failure
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._failure())

    async def wait(self) -> None:
        """Wait until something happens.

        Raises:
            Exception: what ``fail`` was called with, also before this call.
        """
        if self._failure is not None:
            raise self._failure()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            del self._waiters[waiter]
