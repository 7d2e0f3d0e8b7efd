"""The iterators over records, batches and tables.

They are classes with ``__anext__``, not async generators, so leaving a loop with
``break`` leaves nothing suspended. A loop that has begun ends when the consumer is
closed (`until_closed`); one that begins on a closed consumer raises.

`RecordStream` is what ``async for record in consumer`` drives. The compiled stream is
its own awaitable: while there are records in the handout, a step of the loop makes no
coroutine, future or task. `PlainStream` does the same with one coroutine per step that
never suspends; it is the reference for the compiled one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar
from weakref import ref

from kafkaio._arguments import count_of, seconds_of
from kafkaio._consumer.batch import (
    AnyBatch,
    Batch,
    TablePiece,
    detach,
    detach_if_alone,
    first_of,
    to_table,
)
from kafkaio._consumer.reading.reader import Reader, Run
from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic, K_co, V_co
from kafkaio._public import knows_other_clients, public
from kafkaio._records._impl import accelerated
from kafkaio._runtime.clock import now
from kafkaio._runtime.time_slice import TimeSlice
from kafkaio.errors import ClosedError
from kafkaio.types import AnyRecord, Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._records.raw import RawBatch

T = TypeVar("T")


class RecordSourcePort(Protocol):
    """A source of records that are taken without waiting."""

    def take(self) -> AnyRecord | None:
        """Take the next record; None if it needs a read that may wait."""
        ...


class PlainStream:
    """The asynchronous iterator over the records of a `Handout`.

    Args:
        source: has the records.
        wait: reads the next record if the source has none.
        time_slice: decides when the event loop gets a turn before a record is taken;
            None if the source does so.
    """

    __slots__ = ("_source", "_time_slice", "_wait")

    def __init__(
        self,
        source: RecordSourcePort,
        wait: Callable[[], Coroutine[Any, Any, AnyRecord]],
        time_slice: TimeSlice | None = None,
    ) -> None:
        self._source = source
        self._wait = wait
        self._time_slice = time_slice

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyRecord:
        """Return the next record. If cancelled, none was taken."""
        time_slice = self._time_slice
        if time_slice is not None and time_slice.clock() >= time_slice.end:
            await time_slice.give_way()
        record = self._source.take()
        return await self._wait() if record is None else record


if TYPE_CHECKING or not accelerated:
    RecordStream = PlainStream
else:
    from kafkaio._records._impl import RecordStream as RecordStream


@public("kafkaio")
@knows_other_clients()
@dataclass(frozen=True, slots=True)
class Poll(Generic[K_co, V_co]):
    """The result of one call of ``Consumer.poll`` (KIP-983).

    Attributes:
        records: records in the order of their offsets, partition by partition.
        to_be_revoked: partitions with a requested revocation. The next poll releases
            them, unless they are delayed or held. No more of their records are handed
            out; commits of them still count.
        lost: partitions that were lost since the poll before. One that is assigned
            again by now is read anew, from its committed offset.
    """

    records: list[Record[K_co, V_co]]
    to_be_revoked: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()
    _runs: Sequence[Run] | None = field(default=None, repr=False, compare=False)

    @property
    def by_partition(self) -> dict[TopicPartition, list[Record[K_co, V_co]]]:
        """The records of each partition that has any, in the order of their offsets.

        The lists are made anew each time.
        """
        found: dict[TopicPartition, list[Record[K_co, V_co]]] = {}
        if self._runs is None:  # made by hand
            for record in self.records:
                found.setdefault(record.topic_partition, []).append(record)
            return found
        start = 0
        for tp, end in self._runs:
            run = self.records[start:end]
            if run and tp in found:
                found[tp] += run
            elif run:
                found[tp] = run
            start = end
        return found


class ClosablePort(Protocol):
    """An object that its user closes, perhaps during an iteration."""

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, and not ended by a crash."""
        ...


async def until_closed(it: ClosablePort, step: Callable[[], Awaitable[T]]) -> T:
    """Take a step of a loop, which ends when the consumer is closed.

    Raises:
        StopAsyncIteration: it was closed, in this step or before.
    """
    try:
        return await step()
    except ClosedError:
        if it.is_closed:
            raise StopAsyncIteration from None
        raise


@public("kafkaio")
class RecordIterator(Generic[K_co, V_co]):
    """Yields records up to an end, as ``Consumer.records`` describes.

    Args:
        consumer: may be closed.
        take: takes a record that is here; None if it needs a read.
        read: reads the next record.
        owner: kept alive with the iterator.
    """

    def __init__(
        self,
        consumer: ClosablePort,
        take: Callable[[], Record[K_co, V_co] | None],
        read: Callable[[], Awaitable[Record[K_co, V_co]]],
        owner: object = None,
    ) -> None:
        self._consumer = consumer
        self._take = take
        self._read = read
        self._owner = owner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[K_co, V_co]:
        """Return the next record. If cancelled, none was taken."""
        record = self._take()
        if record is not None:
            return record
        return await until_closed(self._consumer, self._read)


class ReadPort(ClosablePort, Protocol):
    """Runs the reads of iterators, one at a time."""

    async def read(
        self, take: Callable[[], T | None], until: Callable[[], float | None]
    ) -> T | None:
        """Wait until ``take`` returns something; None when ``until`` has passed."""
        ...


class Pace(Generic[T]):
    """When what is here is handed out: there is enough, or it has waited long enough.

    Args:
        max_wait: seconds to wait, once there are any records.

    Attributes:
        until: when the records that are here have waited long enough; None without
            records. A full batch does not extend it, or slow partitions would wait for
            ever.
    """

    __slots__ = ("_max_wait", "until")

    def __init__(self, max_wait: float) -> None:
        self._max_wait = seconds_of("max_wait", max_wait)
        self.until: float | None = None

    def take(
        self,
        *,
        has_any: bool,
        is_full: Callable[[], bool],
        gather: Callable[[bool], T | None],
    ) -> T | None:
        """Gather records if it is time for that; None if it is not.

        Args:
            has_any: whether there are records.
            is_full: whether there are enough.
            gather: takes records; it is told whether they have waited long enough.
        """
        if not has_any:
            self.until = None
            return None
        # The wait begins with the first record, not with the call.
        moment = now()
        if self.until is None:
            self.until = moment + self._max_wait
        is_due = moment >= self.until
        if not is_due and not is_full():
            return None
        taken = gather(is_due)
        if is_due:
            self.until = None
        return taken


class _Gathering(Generic[T]):
    # Waits until there are enough records, or the first ones have waited long enough.

    def __init__(
        self,
        core: ReadPort,
        reader: Reader,
        max_records: int,
        max_wait: float,
        owner: object = None,
    ) -> None:
        self._core = core
        self._reader = reader
        self._max_records = max_records
        self._pace = Pace[T](max_wait)
        # Kept, so that a consumer is not collected while somebody iterates.
        self._owner = owner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next one. If cancelled, nothing was taken."""
        return await until_closed(self._core, self._next)

    async def _next(self) -> T:
        while True:
            taken = await self._core.read(self._take, self._deadline)
            if taken is not None:
                return taken

    def _deadline(self) -> float | None:
        return self._pace.until

    def _take(self) -> T | None:
        return self._pace.take(
            has_any=self._reader.has_any(),
            is_full=self._is_full,
            gather=lambda is_due: self._gather(is_due=is_due),
        )

    def _is_full(self) -> bool:
        raise NotImplementedError

    def _gather(self, *, is_due: bool) -> T | None:
        raise NotImplementedError


@public("kafkaio")
class BatchIterator(_Gathering[Batch[K_co, V_co]], Generic[K_co, V_co]):
    """Yields batches of one partition each, as ``Consumer.batches`` describes.

    Args:
        core: runs the reads.
        reader: has the records.
        max_records: most records of a batch.
        max_wait: seconds to wait for that many, once there are any.
        owner: kept alive with the iterator.
    """

    def __init__(
        self,
        core: ReadPort,
        reader: Reader,
        max_records: int,
        max_wait: float,
        owner: object = None,
    ) -> None:
        super().__init__(core, reader, max_records, max_wait, owner)
        self._newest: Callable[[], AnyBatch | None] = _nothing
        self._older: Callable[[], AnyBatch | None] = _nothing

    def _is_full(self) -> bool:
        return self._reader.buffers.has_full(self._max_records)

    def _gather(self, *, is_due: bool) -> Batch[K_co, V_co] | None:
        batch = self._reader.take_batch(self._max_records, prefer_full=not is_due)
        if batch is not None:
            detach_if_alone(batch)
            # During this call the loop variable still refers to the previous batch. A
            # batch older than that is kept on purpose, and perhaps for long: it must
            # not keep a whole fetch response in memory.
            older, self._newest = self._newest, ref(batch)
            kept, self._older = self._older(), older
            if kept is not None:
                detach(kept)
        return batch


@public("kafkaio")
class RawBatchIterator:
    """Yields record batches as they were fetched; see ``Consumer.raw_batches``.

    Args:
        core: runs the reads.
        reader: has the batches.
        here: takes a run of batches that is at hand, of about so many bytes; None if
            it needs a read.
        owner: kept alive with the iterator.
    """

    def __init__(
        self,
        core: ReadPort,
        reader: Reader,
        here: Callable[[int], list[RawBatch] | None],
        owner: object = None,
    ) -> None:
        self._core = core
        self._reader = reader
        self._here = here
        self._owner = owner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RawBatch:
        """Return the next batch. If cancelled, nothing was taken."""
        run = self._here(0)
        if run is None:
            run = await until_closed(self._core, partial(self._next, 0))
        return run[0]

    async def take(self, max_bytes: int) -> list[RawBatch]:
        """Return the next batch, and those that follow it in its partition.

        So a mirror of small batches has less to do for each. `Producer.enqueue_raw`
        takes them as they are. Only batches that were fetched already are added, so
        that this waits no longer than the next step of a loop; they count as handed
        out, and are finished, together. If cancelled, nothing was taken.

        Args:
            max_bytes: once they have so many bytes, no further batch is added.

        Returns:
            The batches in the order of their offsets; empty at the end of the
            iteration.

        Raises:
            ArgumentTypeError: ``max_bytes`` is not an int.
            ArgumentValueError: it is below 1.
            KafkaError: as ``__anext__``.
        """
        most = count_of("max_bytes", max_bytes, 1)
        run = self._here(most)
        if run is None:
            try:
                run = await until_closed(self._core, partial(self._next, most))
            except StopAsyncIteration:
                return []
        return run

    async def _next(self, most: int) -> list[RawBatch]:
        take = partial(self._reader.take_raw, most)
        run = await self._core.read(take, _nothing)
        assert run is not None  # without a time limit
        return run


def _nothing() -> None:
    """Stand for a batch that does not exist."""


@public("kafkaio")
class TableIterator(_Gathering["pa.Table"]):
    """Yields tables of any partitions, as ``Consumer.arrow_batches`` describes.

    Args:
        core: runs the reads.
        reader: has the records.
        max_records: most rows of a table.
        max_wait: seconds to wait for that many, once there are any.
        headers: whether the tables have a column with the headers.
        owner: kept alive with the iterator.

    Raises:
        ImportError: pyarrow is not installed.
    """

    def __init__(
        self,
        core: ReadPort,
        reader: Reader,
        max_records: int,
        max_wait: float,
        *,
        headers: bool,
        owner: object = None,
    ) -> None:
        to_table([], 0)  # raises ImportError before records are taken
        super().__init__(core, reader, max_records, max_wait, owner)
        self._headers = headers

    def _is_full(self) -> bool:
        return self._reader.buffers.all_at_hand >= self._max_records

    def _gather(self, *, is_due: bool) -> pa.Table | None:
        del is_due
        taken: list[tuple[TopicPartition, TablePiece]] = []
        try:
            table = to_table(
                self._take_pieces(taken), self._most(), headers=self._headers
            )
        except BaseException:
            # Arrow has no type for a deserialized object, or the call was interrupted:
            # the records were not read. In reverse, so that each partition ends up at
            # its first piece.
            for tp, piece in reversed(taken):
                self._reader.seek(tp, first_of(piece).offset)
            raise
        return table if taken else None

    def _most(self) -> int:
        return min(self._max_records, self._reader.buffers.all_at_hand)

    def _take_pieces(
        self, taken: list[tuple[TopicPartition, TablePiece]]
    ) -> Iterator[tuple[TopicPartition, TablePiece]]:
        for part in self._reader.take_pieces(self._max_records):
            taken.append(part)
            yield part
