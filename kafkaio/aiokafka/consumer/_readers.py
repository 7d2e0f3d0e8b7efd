"""Several tasks that read from one consumer.

kafkaio lets one task read at a time, and aiokafka any number. So the readers take
turns: a turn is one poll for the reader's own partitions, which returns at once. A
reader whose turn gave nothing waits for all who have had their turn, so that one of
them has something to take. It takes nothing for another reader: that one may be
cancelled, and records on their way to it would be lost. A single reader polls and waits
in one call.

Invariants:

- The lock is held while the consumer of kafkaio is read, and by nobody else. A record
  that is there is taken without it if nobody reads: nothing else runs in that step.
- Whoever holds it and waits does so in ``_waiting``, which every newcomer cancels. A
  read that is cancelled has taken nothing.
- Nobody waits while a newcomer has not had a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import kafkaio
from kafkaio import TopicPartition

T = TypeVar("T")
#: What a consumer hands out: whatever the deserializers return.
Native = kafkaio.Consumer[Any, Any]


class Reader:
    """A task that reads.

    Attributes:
        partitions: those that it wants records of; None for all.
        has_tried: whether it had a turn since it asked.
    """

    __slots__ = ("has_tried", "partitions")

    def __init__(self, partitions: frozenset[TopicPartition] | None) -> None:
        self.partitions = partitions
        self.has_tried = False


class Readers:
    """The tasks that read from a consumer now.

    Args:
        native: the consumer.
        clock: the time of the event loop, in seconds.
    """

    def __init__(self, native: Native, clock: Callable[[], float]) -> None:
        self._native = native
        self._next = native.__anext__
        self._clock = clock
        self._lock = asyncio.Lock()
        self._readers: list[Reader] = []
        self._waiting: asyncio.Timeout | None = None
        self._changes = 0

    def changed(self) -> None:
        """Let all readers return: something else is assigned, or to be read."""
        self._changes += 1
        self._interrupt()

    def _interrupt(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.reschedule(self._clock())

    async def read_one(self) -> Any:
        """Return the next record of any partition, if this is the only reader.

        Returns:
            The record; None if another task came.
        """
        lock = self._lock
        if self._readers or lock.locked():
            return None
        # A record that is there is taken in one step, in which no other task can come.
        # So it costs neither a time limit nor the lock, which are five times as dear.
        step = self._next()
        try:
            step.send(None)
        except StopIteration as taken:
            return taken.value
        # It would have to wait, and has taken nothing. It begins again, where a
        # newcomer can cancel it; as `_alone`, with as few coroutines as possible.
        step.close()
        limit = asyncio.timeout(None)
        await lock.acquire()
        try:
            async with limit:
                self._waiting = limit
                return await self._next()
        except TimeoutError:
            if limit.expired():
                return None
            raise
        finally:
            self._waiting = None
            lock.release()

    async def read(
        self,
        partitions: frozenset[TopicPartition] | None,
        limit: int,
        until: float | None,
    ) -> kafkaio.Poll[Any, Any]:
        """Take records; wait for some if there are none.

        Args:
            partitions: assigned partitions; None for all.
            limit: most records.
            until: when to stop waiting; None for never.

        Returns:
            No records if time is up, or if the assignment may have changed.
        """
        reader, before = Reader(partitions), self._changes
        over: asyncio.Timeout | None = None
        self._readers.append(reader)
        self._interrupt()
        try:
            async with self._lock:
                poll = await self._turn(reader, limit, until)
            over = asyncio.timeout_at(until)
            async with over:
                while poll is None and self._changes == before:
                    # The others have their turn now: the lock is fair.
                    async with self._lock:
                        poll = await self._turn(reader, limit, until)
            return kafkaio.Poll([]) if poll is None else poll
        except TimeoutError:
            if over is None or not over.expired():
                raise
            return kafkaio.Poll([])
        finally:
            self._readers.remove(reader)

    async def _turn(
        self, reader: Reader, limit: int, until: float | None
    ) -> kafkaio.Poll[Any, Any] | None:
        """Poll; None if the reader has to wait, and others come first."""
        native, wanted = self._native, reader.partitions
        if len(self._readers) == 1:
            left = self._left(until)
            return await self._alone(
                native.poll(timeout=left, max_records=limit, partitions=wanted)
            )
        poll = await native.poll(timeout=0, max_records=limit, partitions=wanted)
        reader.has_tried = True
        if poll.records or self._left(until) == 0:
            return poll
        if all(each.has_tried for each in self._readers):
            await self._wait(until)
        return None

    async def _wait(self, until: float | None) -> None:
        """Wait until one of the readers may have something to take."""
        wanted = self._wanted()
        if wanted is not None and not wanted:
            self.changed()  # none of them is assigned any more
            return
        waited = await self._alone(
            self._native.poll(
                timeout=self._left(until), max_records=0, partitions=wanted
            )
        )
        if waited is not None:
            for each in self._readers:
                each.has_tried = False

    def _left(self, until: float | None) -> float | None:
        return None if until is None else max(0.0, until - self._clock())

    def _wanted(self) -> frozenset[TopicPartition] | None:
        wanted = frozenset[TopicPartition]()
        for reader in self._readers:
            if reader.partitions is None:
                return None
            wanted |= reader.partitions
        return wanted & self._native.assignment

    async def _alone(self, reading: Awaitable[T]) -> T | None:
        """Wait for a read; None if it was cancelled by a newcomer."""
        # The time limit is set when somebody comes. Each record that is read alone
        # pays for it.
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._waiting = limit
                return await reading
        except TimeoutError:
            if limit.expired():
                return None
            raise
        finally:
            self._waiting = None
