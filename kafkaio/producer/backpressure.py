"""Backpressure: calls wait, first come, first served, for space in the buffer.

Invariant: while a call waits, no record is taken in that came later. So `try_reserve`
gives nothing then, and the gate's barrier keeps records out of the open batches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Protocol

from kafkaio._machines.accumulator import Barrier
from kafkaio._records._layout import twin_of
from kafkaio.errors import KafkaTimeout

__all__ = ["BufferSpace"]


class Memory(Protocol):
    """The buffer memory of the accumulator."""

    def reserve(self, size: int) -> bool:
        """Set ``size`` bytes aside; False if there is not enough memory."""

    def release(self, size: int) -> None:
        """Return bytes that were set aside."""


class Entrance(Protocol):
    """The gate of the accumulator."""

    def raise_barrier(self, barrier: Barrier) -> None:
        """Send all records through the accumulator until the barrier is removed."""

    def remove_barrier(self, barrier: Barrier) -> None:
        """Let batches be leased again, unless there is another barrier."""


class BufferSpace:
    """The queue of calls that wait until the buffer has space for their record.

    Args:
        memory: where bytes are reserved.
        gate: closed to records past the accumulator while calls wait.
        max_block: longest wait, in seconds.

    Attributes:
        waited: seconds that calls have waited, in sum.
        timeouts: how many calls have waited for too long.
    """

    __slots__ = ("_gate", "_max_block", "_memory", "_waiters", "timeouts", "waited")

    def __init__(self, memory: Memory, gate: Entrance, max_block: float) -> None:
        self._memory = memory
        self._gate = gate
        self._max_block = max_block
        # Invariant: a waiter leaves when its bytes were reserved, or when it failed or
        # was cancelled.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.waited: float = 0.0
        self.timeouts: int = 0

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def is_awaited(self) -> bool:
        """Whether a call waits."""
        return bool(self._waiters)

    def try_reserve(self, size: int) -> bool:
        """Reserve bytes at once; False if other calls wait or there is no space."""
        return not self._waiters and self._memory.reserve(size)

    async def reserve(self, size: int) -> None:
        """Reserve bytes, after all calls that came before.

        If cancelled, nothing is reserved.

        Raises:
            KafkaTimeout: there was not enough space within ``max_block_ms``.
        """
        if self.try_reserve(size):
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        entry = (size, waiter)
        self._waiters.append(entry)
        self._gate.raise_barrier(Barrier.BACKPRESSURE)
        timer = loop.call_later(self._max_block, partial(self._time_out, entry))
        began = loop.time()
        try:
            await waiter
        except BaseException:
            # Race: the bytes were reserved, and the task was cancelled before it ran.
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self._memory.release(size)
            elif entry in self._waiters:
                self._waiters.remove(entry)
            self.grant()
            raise
        finally:
            timer.cancel()
            self.waited += loop.time() - began

    def grant(self) -> bool:
        """Reserve the space that there is for the calls that wait, in their order.

        Returns:
            Whether a call still waits.
        """
        while self._waiters:
            size, waiter = self._waiters[0]
            if not waiter.done():
                if not self._memory.reserve(size):
                    return True
                waiter.set_result(None)
            self._waiters.popleft()
        self._gate.remove_barrier(Barrier.BACKPRESSURE)
        return False

    def fail_waiting(self, error: Exception) -> None:
        """Fail all calls that wait."""
        while self._waiters:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                # Each call has an error of its own: a table notes in it how far it got.
                waiter.set_exception(twin_of(error))
        self._gate.remove_barrier(Barrier.BACKPRESSURE)

    def close(self, error: Exception) -> None:
        """Fail all calls that wait, and let no record in past the accumulator."""
        self._gate.raise_barrier(Barrier.CLOSED)
        self.fail_waiting(error)

    def _time_out(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        size, waiter = entry
        if not waiter.done():
            self.timeouts += 1
            waiter.set_exception(
                KafkaTimeout(
                    f"no space for {size} bytes in the producer's buffer within "
                    f"max_block_ms={self._max_block * 1000:g}"
                )
            )
