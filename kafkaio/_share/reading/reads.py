"""The reads of a share consumer: the calls that wait for records.

One task reads at a time. Each read begins with a *step* of its holder: the user asks
for more, so with implicit acknowledgement everything handed out before is accepted.
Every await comes before the taking, so a cancelled call has taken nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkaio._consumer.reading.exclusive import ExclusiveReading, UserCode
from kafkaio._consumer.reading.iterators import RecordStream
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._share.ports import EnginePort
from kafkaio._share.reading.iterators import Holder
from kafkaio._share.reading.reader import ShareReader
from kafkaio.errors import UsageError

if TYPE_CHECKING:
    from kafkaio._records._acquired import AnyShareRecord
    from kafkaio._share.batch import AnyShareBatch

T = TypeVar("T")

#: Seconds after a poll in which another one finds what was fetched ahead. Then it is
#: given back: whoever polls, and stops, must not keep records from others.
GRACE: Final = 1.0
#: Records that are handed out between two readings of the loop's clock. In between,
#: each record reads a clock that costs less and is less exact.
_ALLOWANCE: Final = 256


class ShareReads:
    """Reads records for iterators, polls and ``run``, one task at a time.

    Args:
        engine: fetches, and says whether the consumer can be used.
        life: the lifecycle of the consumer.
        reader: has the records.

    Attributes:
        reading: lets one task read at a time.
        time_slice: when the event loop is to get a turn.
        user_code: the tasks that run handlers of ``run``.
    """

    def __init__(
        self, engine: EnginePort, life: Lifecycle, reader: ShareReader
    ) -> None:
        self.reading: ExclusiveReading = ExclusiveReading()
        self.time_slice: TimeSlice = TimeSlice()
        self.user_code: UserCode = UserCode()
        self._engine = engine
        self._life = life
        self._reader = reader
        self._has_topics = False
        reader.allowance = self._allowance
        # The holders whose iterators were collected, perhaps in another thread.
        self._left = deque[Holder]()
        self._poller = Holder("poll")
        self._grace: asyncio.TimerHandle | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed the consumer, and no crash had ended it."""
        return self._life.is_closed

    def subscribed(self, *, has_topics: bool) -> None:
        """Note that there is something to read now, or nothing at all."""
        self._has_topics = has_topics
        if not has_topics:
            self._engine.notify()  # a read that waits would wait for ever

    # Holders

    def leave(self, holder: Holder) -> None:
        """End a reading: release what it has no use for."""
        self.settle()
        self._reader.end(holder)

    def left(self, holder: Holder) -> None:
        """Do so soon. May be called in any thread, and by a finalizer."""
        self._left.append(holder)
        self._life.soon(self.settle)

    def accept(self) -> None:
        """Accept everything that was handed out, with implicit acknowledgement."""
        self._reader.accept()

    def settle(self) -> None:
        """End the readings that were left, before anything else happens."""
        while self._left:
            self._reader.end(self._left.popleft())

    def _poll_is_over(self) -> None:
        self._grace = None
        # What the last poll returned stays in the user's hands.
        self._reader.end(self._poller, keeps_last=True)

    def _end_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    # Reading

    def stream(
        self,
        holder: Holder,
        wait: Callable[[], Coroutine[Any, Any, AnyShareRecord]],
    ) -> Callable[[], Awaitable[AnyShareRecord]]:
        """Return a function that takes the next record; ``wait`` reads if need be.

        While there are records, taking one makes no coroutine, future or task.
        """
        del holder  # of which ``wait`` knows
        self.settle()
        self._reader.pause()  # the first step is a read, which notes who reads
        return RecordStream(self._reader.handout, wait).__anext__  # type: ignore[return-value]  # share records

    async def next_record(self, holder: Holder) -> AnyShareRecord:
        """Return the next record; wait for it as long as it takes."""
        record = await self.read(holder, self._reader.take_one, _never)
        assert record is not None, "without a time limit"
        return record  # type: ignore[return-value]  # a share record

    async def next_batch(
        self,
        holder: Holder,
        take: Callable[[], AnyShareBatch | None],
        until: Callable[[], float | None],
    ) -> AnyShareBatch | None:
        """Wait until ``take`` returns a batch; None when ``until`` has passed."""
        return await self.read(holder, take, until)

    async def poll(self, limit: int, wait: float | None) -> list[AnyShareRecord]:
        """Take the records that are there; wait only if there are none."""
        deadline = None if wait is None else now() + wait
        reader = self._reader
        try:
            taken = await self.read(
                self._poller, lambda: reader.take(limit) or None, lambda: deadline
            )
        finally:
            loop = asyncio.get_running_loop()
            self._end_grace()
            self._grace = loop.call_later(GRACE, self._poll_is_over)
        reader.forget_last()
        return taken or []  # type: ignore[return-value]  # share records

    @contextmanager
    def dividing(self, holder: Holder) -> Iterator[None]:
        """Let the tasks of ``run`` take records within the block, and nobody else.

        Raises:
            UsageError: another task reads, or nothing is subscribed to.
            ClosedError: the consumer is not running.
        """
        self.user_code.refuse_reading()
        with self.reading:
            self.settle()
            self._engine.check()
            self.check_topics()
            self._end_grace()
            self._reader.step(holder)
            self._reader.hand_to_tasks(begins=True)
            try:
                yield
            finally:
                # Each task has decided about its records.
                self._reader.end(holder, keeps_last=True)
                self._reader.hand_to_tasks(begins=False)

    async def read(
        self,
        holder: Holder,
        take: Callable[[], T | None],
        until: Callable[[], float | None],
    ) -> T | None:
        """Wait until ``take`` returns something; None when time is up.

        Args:
            holder: who reads.
            take: takes records that are fetched; returns None for none.
            until: when to stop waiting; called after each time that nothing was taken.

        Raises:
            UsageError: another task reads, or nothing is subscribed to.
            ClosedError: the consumer is closed.
            Exception: an error that the user must get, once.
        """
        self.user_code.refuse_reading()
        with self.reading:
            self._reader.pause()  # nobody else may take a record meanwhile
            self.settle()
            if self.time_slice.is_over:
                await self.time_slice.give_way()
            self._engine.check()
            self._end_grace()
            self._reader.step(holder)
            while True:
                self._engine.check()
                self._reader.check()
                self.check_topics()
                taken = take()
                if taken is not None:
                    return taken
                if self._reader.errors:
                    continue  # found while taking
                limit = until()
                if limit is not None and now() >= limit:
                    return None
                await self._engine.wait_for_news(limit)
                self.time_slice.renew()

    def check_topics(self) -> None:
        """Raise if there is nothing to read.

        Raises:
            UsageError: nothing is subscribed to.
        """
        if not self._has_topics:
            raise UsageError(
                "the share consumer is not subscribed to any topics: call subscribe() "
                "before reading"
            )

    def _allowance(self) -> int:
        # Also none if the consumer is closing: the next step must be a read.
        is_running = self._life.state is LifecycleState.RUNNING
        return _ALLOWANCE if is_running and not self.time_slice.is_over else 0


def _never() -> None:
    """Return when to stop waiting for a record: never."""
