"""Backpressure: calls wait, first come, first served, for space in the buffer.

Invariant: while a call waits for memory, no later record is taken in. So `try_reserve`
reserves nothing then, and the gate's barrier keeps records out of the open batches.

A call whose record is for a partition without progress, or one that holds much of the
buffer, may have to wait although there is memory
(`kafkaio._machines.accumulator.share`). Such calls are *held back*: each partition has
a queue of its own, which holds up no other. For that partition alone the same invariant
holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Protocol

from kafkaio._machines.accumulator import Barrier
from kafkaio._named_tuple import NamedTuple
from kafkaio._records._layout import twin_of
from kafkaio._runtime.clock import now
from kafkaio.errors import KafkaTimeout
from kafkaio.types import TopicPartition

#: Seconds between two checks of calls that are held back. An answer of the broker is
#: noticed at once; its silence, and records that expire, only with time.
_RECHECK_INTERVAL = 0.1


class MemoryPort(Protocol):
    """The buffer memory of the accumulator."""

    def reserve(self, size: int) -> bool:
        """Set ``size`` bytes aside; False if there is not enough memory."""

    def release(self, size: int) -> None:
        """Return bytes that were set aside."""


class GatePort(Protocol):
    """The gate of the accumulator."""

    def raise_barrier(self, barrier: Barrier) -> None:
        """Send all records through the accumulator until the barrier is removed."""

    def remove_barrier(self, barrier: Barrier) -> None:
        """Let batches be leased again, unless there is another barrier."""


class SharePort(Protocol):
    """The share of the buffer for partitions without progress."""

    def must_wait(self, place: TopicPartition, size: int, now: float) -> bool:
        """Whether a record for a place must wait although there is memory."""

    def took(self, place: TopicPartition, size: int, now: float) -> None:
        """Note that a record for a place is taken in."""

    def hold_back(self, place: TopicPartition) -> None:
        """Make every record for a place go through the accumulator."""

    def let_in(self, place: TopicPartition) -> None:
        """Note that calls for a place are no longer held back."""

    def why(self, place: TopicPartition, now: float) -> str:
        """Return why records for a place have to wait."""


class Waiter(NamedTuple):
    """A call that waits: for how many bytes, for which place, and its future."""

    size: int
    place: TopicPartition | None
    future: asyncio.Future[None]


class BufferSpace:
    """The calls that wait until the buffer has space for their record.

    Args:
        memory: where bytes are reserved.
        gate: closed to records past the accumulator while calls wait.
        share: says which calls are held back.
        max_block: longest wait, in seconds.

    Attributes:
        waited: seconds that calls have waited, in sum.
        timeouts: how many calls have waited for too long.
    """

    __slots__ = (
        "_gate",
        "_held_back",
        "_max_block",
        "_memory",
        "_share",
        "_timer",
        "_waiters",
        "timeouts",
        "waited",
    )

    def __init__(
        self, memory: MemoryPort, gate: GatePort, share: SharePort, max_block: float
    ) -> None:
        self._memory = memory
        self._gate = gate
        self._share = share
        self._max_block = max_block
        # Invariant: a waiter is removed when its bytes are reserved, when it fails, and
        # when it is cancelled. A queue in _held_back is never empty.
        self._waiters: deque[Waiter] = deque()
        self._held_back: dict[TopicPartition, deque[Waiter]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.waited: float = 0.0
        self.timeouts: int = 0

    def __len__(self) -> int:
        return len(self._waiters) + sum(map(len, self._held_back.values()))

    @property
    def is_awaited(self) -> bool:
        """Whether a call waits."""
        return bool(self._waiters or self._held_back)

    def try_reserve(self, size: int, place: TopicPartition | None = None) -> bool:
        """Reserve bytes now; False if other calls wait, or memory is short.

        Args:
            size: the bytes.
            place: where the record goes, -1 for a partition that is not chosen yet;
                None if it is not held back.
        """
        if self._waiters:
            return False
        if place is None:
            return self._memory.reserve(size)
        return not self._must_wait(place, size) and self._take(size, place)

    def _take(self, size: int, place: TopicPartition | None) -> bool:
        if not self._memory.reserve(size):
            return False
        if place is not None:
            self._share.took(place, size, now())
        return True

    def _must_wait(self, place: TopicPartition, size: int) -> bool:
        return place in self._held_back or self._share.must_wait(place, size, now())

    async def reserve(self, size: int, place: TopicPartition | None = None) -> None:
        """Reserve bytes, after all calls that came before.

        If cancelled, nothing is reserved.

        Args:
            size: the bytes.
            place: as for `try_reserve`.

        Raises:
            KafkaTimeout: there was not enough space within ``max_block_ms``.
        """
        entry = self.queue(size, place)
        if entry is not None:
            await self.reserved(entry)

    def queue(self, size: int, place: TopicPartition | None = None) -> Waiter | None:
        """Begin to `reserve`: reserve bytes, or queue behind those that wait.

        Returns:
            The place in the queue, which the caller has to await at once by `reserved`;
            None if the bytes are reserved.
        """
        if self.try_reserve(size, place):
            return None
        entry = Waiter(size, place, asyncio.get_running_loop().create_future())
        self._enter(entry)
        return entry

    async def reserved(self, entry: Waiter) -> None:
        """Wait until bytes are reserved, as `reserve` does."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._max_block, partial(self._time_out, entry))
        began = loop.time()
        waiter = entry.future
        try:
            await waiter
        except BaseException:
            # Race: `grant` reserved the bytes, and the task was cancelled before it
            # ran. Nobody else would return them.
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self._memory.release(entry.size)
            else:
                self._leave(entry)
            self.grant()
            raise
        finally:
            timer.cancel()
            self.waited += loop.time() - began

    def _enter(self, entry: Waiter) -> None:
        place = entry.place
        if place is not None and self._must_wait(place, entry.size):
            self._hold_back(place, entry)
        else:
            self._waiters.append(entry)
            self._gate.raise_barrier(Barrier.BACKPRESSURE)

    def _hold_back(self, place: TopicPartition, entry: Waiter) -> None:
        queue = self._held_back.get(place)
        if queue is None:
            queue = self._held_back[place] = deque()
            self._share.hold_back(place)
            self._recheck_later()
        queue.append(entry)

    def _leave(self, entry: Waiter) -> None:
        queue = self._waiters
        if entry.place is not None:
            queue = self._held_back.get(entry.place, queue)
        for waiters in (queue, self._waiters):
            if entry in waiters:
                waiters.remove(entry)
                break
        if entry.place is not None and not queue and queue is not self._waiters:
            self._let_in(entry.place)

    def _let_in(self, place: TopicPartition) -> deque[Waiter]:
        self._share.let_in(place)
        return self._held_back.pop(place)

    def _recheck_later(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_RECHECK_INTERVAL, self._recheck)

    def _recheck(self) -> None:
        self._timer = None
        self.grant()
        if self._held_back:
            self._recheck_later()

    def grant(self) -> bool:
        """Reserve the free space for the calls that wait, in their order.

        Returns:
            Whether a call still waits for memory.
        """
        if self._held_back:
            self._queue_up()
        while self._waiters:
            size, place, waiter = self._waiters[0]
            if not waiter.done():
                if place is not None and self._must_wait(place, size):
                    self._hold_back(place, self._waiters.popleft())
                    continue
                if not self._take(size, place):
                    return True
                waiter.set_result(None)
            self._waiters.popleft()
        self._gate.remove_barrier(Barrier.BACKPRESSURE)
        return False

    def _queue_up(self) -> None:
        at = now()
        for place, queue in list(self._held_back.items()):
            while queue and queue[0].future.done():
                queue.popleft()
            if queue and not self._share.must_wait(place, queue[0].size, at):
                if self._waiters:
                    # Those calls have waited for memory all the time, and come first.
                    self._waiters += queue
                    queue.clear()
                else:
                    self._grant_held_back(place, queue, at)
            if not queue:
                self._let_in(place)

    def _grant_held_back(
        self, place: TopicPartition, queue: deque[Waiter], at: float
    ) -> None:
        while queue:
            size, _, waiter = queue[0]
            if not waiter.done():
                if self._share.must_wait(place, size, at) or not self._take(
                    size, place
                ):
                    return
                waiter.set_result(None)
            queue.popleft()

    def fail_waiting(self, error: Exception) -> None:
        """Fail all calls that wait."""
        for place in list(self._held_back):
            self._waiters += self._let_in(place)
        while self._waiters:
            waiter = self._waiters.popleft().future
            if not waiter.done():
                # Each call gets its own error, because a table adds a note to it: how
                # many of its rows were taken in.
                waiter.set_exception(twin_of(error))
        self._gate.remove_barrier(Barrier.BACKPRESSURE)

    def close(self, error: Exception) -> None:
        """Fail all calls that wait, and refuse records from now on."""
        self._gate.raise_barrier(Barrier.CLOSED)
        self.fail_waiting(error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def why_held_back(self, size: int, place: TopicPartition | None) -> str | None:
        """Return why a call for a place is held back; None if it is not."""
        if place is not None and self._must_wait(place, size):
            return self._share.why(place, now())
        return None

    def _time_out(self, entry: Waiter) -> None:
        if entry.future.done():
            return
        self.timeouts += 1
        limit = f"max_block_ms={self._max_block * 1000:g}"
        why = ""
        if entry.place is not None and entry.place in self._held_back:
            why = f": {self._share.why(entry.place, now())}"
        entry.future.set_exception(
            KafkaTimeout(
                f"no space for {entry.size} bytes in the producer's buffer within "
                f"{limit}{why}"
            )
        )
