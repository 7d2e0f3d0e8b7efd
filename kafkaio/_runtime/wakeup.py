"""A wake-up for one background task that waits, by any code that notifies it."""

from __future__ import annotations

import asyncio

from kafkaio._runtime.clock import now


class Wakeup:
    """A latch with a deadline, for one task that waits and any code that notifies.

    A notification is never lost: it stays until a ``wait`` returns because of it,
    also when the waiting task is cancelled in the same iteration of the loop.
    """

    __slots__ = ("_notified", "_waiter")

    def __init__(self) -> None:
        self._notified = False
        self._waiter: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """Wake the waiting task, now or when it waits next. Can be repeated."""
        self._notified = True
        _release(self._waiter)

    async def wait(self, until: float | None = None) -> bool:
        """Wait for a notification, or until the loop's time reaches ``until``.

        The loop runs other tasks at least once, also when a notification has come
        already: a task that notifies itself can therefore never starve the others.

        Args:
            until: a time of the loop's clock in seconds; None waits without limit.

        Returns:
            Whether there was a notification, which is consumed. If the call is
            cancelled, it is kept for the next one.
        """
        if self._notified or (until is not None and until <= now()):
            await asyncio.sleep(0)
        else:
            await self._sleep(until)
        notified, self._notified = self._notified, False
        return notified

    async def _sleep(self, until: float | None) -> None:
        if self._waiter is not None:
            raise RuntimeError("another task waits on this Wakeup already")
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = None if until is None else loop.call_at(until, _release, waiter)
        self._waiter = waiter
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def _release(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
