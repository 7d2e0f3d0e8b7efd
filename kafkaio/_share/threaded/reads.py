"""The reads of a share consumer whose core runs in the I/O thread.

`ThreadedReads` has the methods of `ShareReads`, for the user's thread. Records cross in
chunks, not one by one. What has crossed and was not handed out is released when the
reading is left, as everything that is buffered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkaio._consumer.reading.exclusive import ExclusiveReading, UserCode
from kafkaio._consumer.reading.iterators import PlainStream
from kafkaio._records._acquired import ACCEPT, RELEASE
from kafkaio._records.batch import acquired_of, settle
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.thread import LoopThread
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio._share.batch import AnyShareBatch, ShareBatch, own_bytes
from kafkaio._share.reading.iterators import Holder
from kafkaio._share.reading.reader import ShareReader
from kafkaio._share.reading.reads import ShareReads
from kafkaio._share.threaded.mirrors import Mirrors

if TYPE_CHECKING:
    from kafkaio._records._acquired import AnyShareRecord

T = TypeVar("T")

#: Most records that cross at once.
_CHUNK: Final = 500


class _Source:
    """The records of one iterator that have crossed (`RecordSourcePort`)."""

    __slots__ = ("_holder", "_reads")

    def __init__(self, reads: ThreadedReads, holder: Holder) -> None:
        self._reads = reads
        self._holder = holder

    def take(self) -> AnyShareRecord | None:
        """Take the next record; None if the thread must be asked first."""
        return self._reads.take(self._holder)


class ThreadedReads:
    """Reads in the I/O thread, for iterators and polls in the user's.

    Args:
        thread: the I/O thread.
        reads: the reads there.
        reader: has the records there.
        mirrors: the ranges that the records refer to.
        life: the lifecycle of the consumer.
        accepts: whether acknowledgement is implicit.
    """

    def __init__(
        self,
        thread: LoopThread,
        reads: ShareReads,
        reader: ShareReader,
        mirrors: Mirrors,
        life: Lifecycle,
        *,
        accepts: bool,
    ) -> None:
        self.user_code: UserCode = reads.user_code
        self.time_slice: TimeSlice = TimeSlice(monotonic)
        self._thread = thread
        self._reads = reads
        self._reader = reader
        self._mirrors = mirrors
        self._life = life
        self._accepts = accepts
        self._reading = ExclusiveReading()
        self._poller = Holder("poll")
        self._holder: Holder | None = None
        # Records that have crossed for the holder, and what it was handed last.
        self._records: deque[AnyShareRecord] = deque()
        self._last: list[AnyShareRecord] | AnyShareBatch | None = None
        # The holders whose iterators were collected, perhaps in another thread.
        self._left = deque[Holder]()

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed the consumer, and no crash had ended it."""
        return self._life.is_closed

    # Holders

    def leave(self, holder: Holder) -> None:
        """End a reading: release what it has no use for."""
        self.settle()
        self._end(holder)

    def left(self, holder: Holder) -> None:
        """Do so soon. May be called in any thread, and by a finalizer."""
        self._left.append(holder)
        self._thread.tell_owner(self.settle)

    def settle(self) -> None:
        """End the readings that were left, before anything else happens."""
        while self._left:
            self._end(self._left.popleft())

    def accept(self) -> None:
        """Accept everything that was handed out, with implicit acknowledgement."""
        self._finish()

    def _end(self, holder: Holder) -> None:
        if self._holder is holder:
            self._holder = None
            self._release(self._last)
            self._last = None
            self._release_crossed()
        # Behind the decisions: the thread takes one thing after the other.
        self._thread.tell(partial(self._reads.leave, holder))

    def _begin(self, holder: Holder) -> None:
        self.settle()
        if self._holder is not holder:
            # Another way of reading takes over.
            if not self._accepts:
                self._release(self._last)
            self._release_crossed()
            self._holder = holder
        self._finish()

    def _finish(self) -> None:
        # The user is done with what was handed out.
        last, self._last = self._last, None
        if not self._accepts or last is None:
            return
        if isinstance(last, ShareBatch):
            last.ack()
            return
        for record in last:
            settle(record, ACCEPT)

    def _release_crossed(self) -> None:
        self._release(self._records)
        self._records.clear()

    def _release(self, what: Iterable[AnyShareRecord] | AnyShareBatch | None) -> None:
        if isinstance(what, ShareBatch):
            what.release()
        elif what is not None:
            for record in what:
                settle(record, RELEASE)

    # Reading

    def take(self, holder: Holder) -> AnyShareRecord | None:
        """Take the next record that has crossed; None if there is none."""
        if self._holder is not holder or self._life.state is not LifecycleState.RUNNING:
            return None
        records = self._records
        while records:
            record = records.popleft()
            if acquired_of(record).is_held(record.offset):
                self._finish()
                self._last = [record]
                return record
        return None

    def stream(
        self,
        holder: Holder,
        wait: Callable[[], Coroutine[Any, Any, AnyShareRecord]],
    ) -> Callable[[], Awaitable[AnyShareRecord]]:
        """Return a function that takes the next record; ``wait`` reads if need be."""
        self.settle()
        source = _Source(self, holder)
        return PlainStream(source, wait, self.time_slice).__anext__  # type: ignore[return-value]  # share records

    async def next_record(self, holder: Holder) -> AnyShareRecord:
        """Return the next record; wait for it as long as it takes."""
        self.user_code.refuse_reading()
        with self._reading:
            self._begin(holder)
            while True:
                if (record := self.take(holder)) is not None:
                    return record
                self._records.extend(await self._cross(partial(self._chunk, holder)))
                self.time_slice.renew()

    async def next_batch(
        self,
        holder: Holder,
        take: Callable[[], AnyShareBatch | None],
        until: Callable[[], float | None],
    ) -> AnyShareBatch | None:
        """Wait until ``take`` returns a batch; None when ``until`` has passed."""
        self.user_code.refuse_reading()
        with self._reading:
            self._begin(holder)
            batch = await self._cross(partial(self._batch, holder, take, until))
            self._last = batch
            return batch

    async def poll(self, limit: int, wait: float | None) -> list[AnyShareRecord]:
        """Take the records that are there; wait only if there are none."""
        self.user_code.refuse_reading()
        with self._reading:
            self._begin(self._poller)
            taken = await self._cross(partial(self._poll, limit, wait))
            # A copy, for the list is the user's.
            self._last = [*taken] if self._accepts else None
            return taken

    async def run(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run a call of ``run`` in the thread; nobody else reads meanwhile."""
        self.user_code.refuse_reading()
        with self._reading:
            self._begin(Holder("run"))
            await self._thread.call(run)

    async def _cross(self, work: Callable[[], Awaitable[T]]) -> T:
        """Take something in the thread, which is released if this is cancelled."""
        taken: list[Any] = []

        async def take() -> None:
            try:
                taken.append(await work())
            finally:
                # The user decides about it, in the other thread.
                self._reader.forget_last(at_all=True)
                self._mirrors.handed_out()

        try:
            await self._thread.call(take)
        except BaseException:
            # It had come when this task was cancelled.
            for each in taken:
                self._release(each)
            raise
        value: T = taken.pop()
        return value

    # In the I/O thread

    async def _chunk(self, holder: Holder) -> list[AnyShareRecord]:
        reader = self._reader
        taken = await self._reads.read(
            holder, lambda: reader.take(_CHUNK) or None, lambda: None
        )
        assert taken is not None, "without a time limit"
        return taken  # type: ignore[return-value]  # share records

    async def _poll(self, limit: int, wait: float | None) -> list[AnyShareRecord]:
        return await self._reads.poll(limit, wait)

    async def _batch(
        self,
        holder: Holder,
        take: Callable[[], AnyShareBatch | None],
        until: Callable[[], float | None],
    ) -> AnyShareBatch | None:
        batch = await self._reads.next_batch(holder, take, until)
        if batch is not None:
            own_bytes(batch)  # it needs nothing of the thread any more
        return batch
