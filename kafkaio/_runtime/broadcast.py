"""An event that repeats, with any number of waiting tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Broadcast:
    """Wakes all waiting tasks each time the event happens; fails them once it cannot.

    Only the tasks that wait when the event happens are woken: unlike an
    `asyncio.Event`, it is not set afterwards.
    """

    __slots__ = ("_failure", "_waiters")

    def __init__(self) -> None:
        # In the order of their calls, which is the order in which they are woken.
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._failure: Callable[[], Exception] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    def notify_all(self) -> None:
        """Wake all tasks that wait now."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Fail all tasks that wait now, and all later calls of `wait`.

        The first call counts.

        Args:
            failure: makes the exception, a new one for each task.
        """
        if self._failure is None:
            self._failure = failure
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._failure())

    async def wait(self) -> None:
        """Wait until the event happens.

        Raises:
            Exception: ``fail`` was called with it, before or during this call.
        """
        if self._failure is not None:
            raise self._failure()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            del self._waiters[waiter]
