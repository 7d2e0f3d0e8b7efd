"""Waiting for room in the buffer: first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from kafkaio._machines.accumulator import Accumulator, Barrier
from kafkaio.errors import KafkaTimeout

__all__ = ["Room"]


class Room:
    """The queue of those who wait until the accumulator can take their record.

    Args:
        accumulator: whose bytes are handed out.
        max_block: longest wait, in seconds.
    """

    __slots__ = ("_accumulator", "_is_closed", "_max_block", "_waiters")

    def __init__(self, accumulator: Accumulator, max_block: float) -> None:
        self._accumulator = accumulator
        self._max_block = max_block
        self._is_closed = False
        # Invariant: a waiter leaves when it was given its bytes, failed or cancelled.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiters)

    def try_reserve(self, size: int) -> bool:
        """Set bytes aside at once; False if others wait or there is no room."""
        return not self._waiters and self._accumulator.budget.reserve(size)

    async def reserve(self, size: int) -> None:
        """Set bytes aside, after all who came before.

        If cancelled, nothing is set aside.

        Raises:
            KafkaTimeout: no room within ``max_block_ms``.
        """
        if self.try_reserve(size):
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        entry = (size, waiter)
        self._waiters.append(entry)
        # From now on everybody queues, and lanes would let others pass.
        self._accumulator.gate.raise_barrier(Barrier.BACKPRESSURE)
        # The sender learns that somebody waits, and lets no batch linger.
        self._accumulator.backlog.has_news = True
        timer = loop.call_later(self._max_block, partial(self._time_out, entry))
        try:
            await waiter
        except BaseException:
            # Race: granted, then cancelled before this task ran. Give it back.
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self._accumulator.budget.release(size)
            elif entry in self._waiters:
                self._waiters.remove(entry)
            self.grant()
            raise
        finally:
            timer.cancel()

    def grant(self) -> bool:
        """Give what room there is to those who wait, in their order.

        Returns:
            Whether somebody has to wait on.
        """
        while self._waiters:
            size, waiter = self._waiters[0]
            if not waiter.done():
                if not self._accumulator.budget.reserve(size):
                    return True
                waiter.set_result(None)
            self._waiters.popleft()
        if not self._is_closed:
            self._accumulator.gate.remove_barrier(Barrier.BACKPRESSURE)
        return False

    def close(self) -> None:
        """Let batches be leased no more: nothing is taken in from now on."""
        self._is_closed = True
        self._accumulator.gate.raise_barrier(Barrier.BACKPRESSURE)

    def fail(self, error: Exception) -> None:
        """Fail all who wait, and close."""
        self.close()
        while self._waiters:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)

    def _time_out(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        size, waiter = entry
        if not waiter.done():
            waiter.set_exception(
                KafkaTimeout(
                    f"no room for {size} bytes in the producer's buffer within "
                    f"max_block_ms={self._max_block * 1000:g}"
                )
            )
