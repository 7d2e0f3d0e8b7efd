"""The iterators of a share consumer.

An iterator is a small object of its own, which knows when it is over: by ``aclose``, or
because nothing refers to it any more. A loop that is left by ``break``, an exception or
a cancellation drops its iterator at once. Then the record that was handed out last is
released, if the program has not decided about it, and so is everything buffered.

Garbage can be collected in any thread, and in the middle of any code. So a finalizer
only notes that the iterator is over (`ReadsPort.left`). Whatever the program calls next
on the consumer comes after that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar
from weakref import ref

from kafkaio._consumer.reading.iterators import ClosablePort, Pace, until_closed
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._public import public
from kafkaio._records.batch import ShareRecord
from kafkaio._share.batch import AnyShareBatch, ShareBatch, own_bytes

if TYPE_CHECKING:
    from kafkaio._records._acquired import AnyShareRecord

T = TypeVar("T")


class Holder:
    """Somebody who reads: what the reader tells one way of reading from another by."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __repr__(self) -> str:
        return f"<Holder {self.name}>"


class ReadsPort(ClosablePort, Protocol):
    """Runs the reads of iterators, one at a time."""

    def stream(
        self,
        holder: Holder,
        wait: Callable[[], Coroutine[Any, Any, AnyShareRecord]],
    ) -> Callable[[], Awaitable[AnyShareRecord]]:
        """Return a function that takes the next record; ``wait`` reads if need be."""
        ...

    async def next_record(self, holder: Holder) -> AnyShareRecord:
        """Return the next record; wait for it as long as it takes."""
        ...

    async def next_batch(
        self,
        holder: Holder,
        take: Callable[[], AnyShareBatch | None],
        until: Callable[[], float | None],
    ) -> AnyShareBatch | None:
        """Wait until ``take`` returns a batch; None when ``until`` has passed."""
        ...

    def leave(self, holder: Holder) -> None:
        """End a reading: release what it has no use for."""

    def left(self, holder: Holder) -> None:
        """Do so soon. May be called in any thread, and by a finalizer."""


@public("kafkaio")
class ShareRecordIterator(Generic[K_co, V_co]):
    """Iterates over the records of a share consumer, as ``async for`` does.

    Leaving the loop ends it, in whatever way: the record that it returned last is
    released, if there is no decision about it, and so are records that were fetched
    ahead. Records that it returned before stay locked until they are acknowledged.
    If a program keeps the iterator in a variable, it calls `aclose`.

    Args:
        reads: runs the reads.
        owner: kept alive with the iterator.
    """

    __slots__ = ("_holder", "_next", "_owner", "_reads")

    def __init__(self, reads: ReadsPort, owner: object = None) -> None:
        self._reads = reads
        # Kept, so that a consumer is not collected while somebody iterates.
        self._owner = owner
        holder = self._holder = Holder("records")

        # It must not refer to this object, which would never be collected at once.
        def wait() -> Coroutine[Any, Any, AnyShareRecord]:
            return until_closed(reads, lambda: reads.next_record(holder))

        self._next = reads.stream(holder, wait)

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[ShareRecord[K_co, V_co]]:
        """Return the next record. If cancelled, none was taken."""
        return self._next()

    async def aclose(self) -> None:
        """End the iteration, as leaving the loop does. May be called again."""
        self._reads.leave(self._holder)

    def __del__(self) -> None:
        if (reads := getattr(self, "_reads", None)) is not None:
            reads.left(self._holder)


class BatchSourcePort(Protocol):
    """The reader, as an iterator over batches uses it."""

    def has_any(self) -> bool:
        """Whether there may be something to take or to raise."""
        ...

    def has_full(self, max_records: int) -> bool:
        """Whether some partition has at least that many records to take."""
        ...

    def take_batch(
        self, max_records: int, *, prefer_full: bool = False
    ) -> AnyShareBatch | None:
        """Take records of one partition, as many as are there up to the limit."""
        ...


@public("kafkaio")
class ShareBatchIterator(Generic[K_co, V_co]):
    """Iterates over batches of a share consumer; see ``ShareConsumer.batches``.

    Leaving the loop ends it, as with `ShareRecordIterator`: the records of the batch
    that it returned last are released, if there is no decision about them.

    Args:
        reads: runs the reads.
        source: has the records.
        max_records: most records of a batch.
        max_wait: seconds to wait for that many, once there are any.
        owner: kept alive with the iterator.
    """

    __slots__ = (
        "_holder",
        "_max_records",
        "_newest",
        "_older",
        "_owner",
        "_pace",
        "_reads",
        "_source",
    )

    def __init__(
        self,
        reads: ReadsPort,
        source: BatchSourcePort,
        max_records: int,
        max_wait: float,
        owner: object = None,
    ) -> None:
        self._pace = Pace[AnyShareBatch](max_wait)
        self._max_records = max_records
        self._reads = reads
        self._source = source
        self._owner = owner
        self._holder = Holder("batches")
        self._newest: Callable[[], AnyShareBatch | None] = _nothing
        self._older: Callable[[], AnyShareBatch | None] = _nothing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ShareBatch[K_co, V_co]:
        """Return the next batch. If cancelled, nothing was taken."""
        return await until_closed(self._reads, self._step)

    async def _step(self) -> AnyShareBatch:
        while True:
            taken = await self._reads.next_batch(
                self._holder, self._take, lambda: self._pace.until
            )
            if taken is not None:
                return taken

    def _take(self) -> AnyShareBatch | None:
        source, most = self._source, self._max_records
        taken = self._pace.take(
            has_any=source.has_any(),
            is_full=lambda: source.has_full(most),
            gather=lambda is_due: source.take_batch(most, prefer_full=not is_due),
        )
        if taken is not None:
            self._own(taken)
        return taken

    def _own(self, batch: AnyShareBatch) -> None:
        own_bytes(batch, if_alone=True)
        # During this call the loop variable still refers to the previous batch. A batch
        # older than that is kept on purpose, and perhaps for long: it must not keep a
        # whole fetch response in memory.
        older, self._newest = self._newest, ref(batch)
        kept, self._older = self._older(), older
        if kept is not None:
            own_bytes(kept)

    async def aclose(self) -> None:
        """End the iteration, as leaving the loop does. May be called again."""
        self._reads.leave(self._holder)

    def __del__(self) -> None:
        if (holder := getattr(self, "_holder", None)) is not None:
            self._reads.left(holder)


def _nothing() -> None:
    """Stand for a batch that does not exist."""
