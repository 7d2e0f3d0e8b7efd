"""Many records in one call: the values of `send_many` and the rows of `send_table`.

Both calls check all records before the first is taken in, take them in, remember where
each went without an object for each, and wait until all are settled. Where all
succeeded, as is usual, the result is computed from the receipts of the batches; else
each record is looked at by itself, and `DeliveriesFailed` tells what became of each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, overload

from kafkaio._arguments import check_partition, type_name
from kafkaio._machines.accumulator import PlainRecord, Receipt
from kafkaio._records._impl import Places, metadata_run
from kafkaio._records.batch import Rows
from kafkaio.errors import ArgumentTypeError, RecordTooLarge
from kafkaio.producer.delivery import Delivery, settled
from kafkaio.types import Headers, NewRecord, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DeliveriesFailed",
    "SentRows",
    "SentValues",
    "Written",
    "check_rows",
    "plan",
]


class DeliveriesFailed(ExceptionGroup[Exception]):
    """Some records of one ``send_many`` or ``send_table`` failed.

    As an exception group it holds each error once, also if several records failed with
    it; ``except*`` works on it.

    Attributes:
        failures: the error of each record that failed, by its index in the call.
        delivered: where the other records were written, by index.
    """

    failures: Mapping[int, Exception]
    delivered: Mapping[int, RecordMetadata]

    @classmethod
    def of(
        cls, failures: Mapping[int, Exception], delivered: Mapping[int, RecordMetadata]
    ) -> Self:
        """Make the group from what became of each record."""
        total = len(failures) + len(delivered)
        listed = ", ".join(str(index) for index in sorted(failures)[:10])
        more = ", ..." if len(failures) > 10 else ""
        group = cls(
            f"{len(failures)} of {total} records failed (index {listed}{more})",
            list({id(error): error for error in failures.values()}.values()),
        )
        group.failures = dict(sorted(failures.items()))
        group.delivered = dict(delivered)
        return group

    # The base class is typed for groups of any exceptions. This one holds only
    # ``Exception``, and so do its parts.
    def derive(  # type: ignore[override]
        self, excs: Sequence[Exception], /
    ) -> DeliveriesFailed:
        """Return a part of the group, for ``split`` and ``except*``."""
        part = DeliveriesFailed(self.message, excs)
        kept = {id(error) for error in excs}
        part.failures = {
            index: error for index, error in self.failures.items() if id(error) in kept
        }
        part.delivered = self.delivered
        return part


# ---- values --------------------------------------------------------------------------


def plan(
    values: Sequence[object],
    make: Callable[[object, object, Headers, int | None], PlainRecord],
) -> list[tuple[int | None, PlainRecord]]:
    """Check all values; return the partition and the record of each.

    Raises:
        ArgumentTypeError: a value has the wrong type.
        ArgumentValueError: a value is impossible.
    """
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(
        values, Iterable
    ):
        raise ArgumentTypeError(
            f"values must be a sequence of values, not one {type_name(values)}"
        )
    planned: list[tuple[int | None, PlainRecord]] = []
    for value in values:
        if isinstance(value, NewRecord):
            if value.partition is not None:
                check_partition(value.partition)
            record = make(value.key, value.value, value.headers, value.timestamp)
            planned.append((value.partition, record))
        else:
            planned.append((None, make(None, value, (), None)))
    return planned


#: Topic, partition, offset of the first record (-1 if unknown), number of records,
#: their timestamp.
Run: TypeAlias = tuple[str, int, int, int, int]


class Written(Sequence[RecordMetadata]):
    """A sequence of `RecordMetadata` that makes each item when it is used.

    It is read-only, refers to nothing of the producer, and equals any sequence with the
    same items. A slice is a list.
    """

    __slots__ = ("_ends", "_runs")

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)
        # For each run, the number of records up to its end.
        self._ends = list(accumulate(run[3] for run in self._runs))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int, /) -> RecordMetadata: ...

    @overload
    def __getitem__(self, at: slice, /) -> list[RecordMetadata]: ...

    def __getitem__(self, at: int | slice, /) -> RecordMetadata | list[RecordMetadata]:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self._at(place) for place in places]
        return self._at(places)

    def _at(self, place: int) -> RecordMetadata:
        number = bisect_right(self._ends, place)
        topic, partition, offset, count, timestamp = self._runs[number]
        if offset >= 0:
            offset += place - (self._ends[number] - count)
        return RecordMetadata(topic, partition, offset, timestamp)

    def __iter__(self) -> Iterator[RecordMetadata]:
        for run in self._runs:
            yield from metadata_run(*run)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        if len(self) > 10:
            return f"<{len(self)} RecordMetadata, {self[0]!r} to {self[-1]!r}>"
        return repr(list(self))


class SentValues:
    """The records that one `send_many` has taken in so far.

    Attributes:
        count: records taken in.
    """

    def __init__(self) -> None:
        self.count: int = 0
        # Runs of records with one receipt: the receipt, the index of the first record
        # there, their number, their timestamp.
        self._runs: list[tuple[Receipt, int, int, int]] = []
        self._failures: dict[int, Exception] = {}

    def add(self, delivery: Delivery) -> None:
        """Add the next record."""
        receipt, index, timestamp = delivery.place()
        self.add_run((receipt, index, 1, timestamp))

    def add_run(self, run: tuple[Receipt, int, int, int]) -> None:
        """Add the next records, as `OpenBatches.take_values` returns them."""
        self._runs.append(run)
        self.count += run[2]

    def fail_rest(self, total: int, error: Exception) -> None:
        """Fail the rest of ``total`` records, which could not be taken in."""
        self._failures = dict.fromkeys(range(self.count, total), error)

    async def outcome(self) -> Sequence[RecordMetadata]:
        """Wait for all, and return where each was written.

        Raises:
            DeliveriesFailed: some records failed.
        """
        await settled([run[0] for run in self._runs])
        if self._failures or any(
            receipt.error is not None or receipt.moved is not None
            for receipt, _, _, _ in self._runs
        ):
            return self._one_by_one()
        return Written(_written(run) for run in self._runs)

    def _one_by_one(self) -> Sequence[RecordMetadata]:
        done: dict[int, RecordMetadata] = {}
        number = 0
        for receipt, first, count, timestamp in self._runs:
            for index in range(first, first + count):
                delivery = Delivery(receipt, index, timestamp)
                error = delivery.exception()
                if error is None:
                    done[number] = delivery.result()
                else:
                    self._failures[number] = error
                number += 1
        if self._failures:
            raise DeliveriesFailed.of(self._failures, done)
        return Written(
            (made.topic, made.partition, made.offset, 1, made.timestamp)
            for made in done.values()
        )


def _written(run: tuple[Receipt, int, int, int]) -> Run:
    receipt, first, count, sent_with = run
    offset, timestamp = receipt.written(first, sent_with)
    return receipt.topic, receipt.partition, offset, count, timestamp


# ---- rows ----------------------------------------------------------------------------


def check_rows(parts: Sequence[Rows], largest: int) -> None:
    """Check every row before the first is taken in.

    Args:
        parts: the rows.
        largest: size of the largest record, in bytes.

    Raises:
        ArgumentValueError: a row cannot become a record.
        RecordTooLarge: a row can never be sent with the limits that are set.
    """
    for rows in parts:
        size = rows.check()
        if size > largest:
            raise RecordTooLarge(
                f"a row takes up to {size} bytes with its batch header; "
                f"max_request_size and buffer_memory allow {largest}"
            )


class SentRows:
    """The rows that one `send_table` has taken in so far.

    Attributes:
        places: where each row went.
    """

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts
        self._length = sum(rows.length for rows in parts)
        self.places: Places = Places(self._length)
        self._failures: dict[int, Exception] = {}

    def add(self, delivery: Delivery) -> None:
        """Add the next row, which was taken in by itself."""
        receipt, index, _ = delivery.place()
        self.places.add(receipt, index)

    def fail_rest(self, error: Exception) -> None:
        """Fail the rest of the rows, which could not be taken in."""
        self._failures = dict.fromkeys(range(self.places.count, self._length), error)

    async def outcome(self) -> pa.Table:
        """Wait for all, and return where each was written.

        Raises:
            DeliveriesFailed: some rows failed.
        """
        receipts = self.places.receipts
        await settled(receipts)
        if self._failures or any(
            receipt.error is not None or receipt.moved is not None
            for receipt in receipts
        ):
            return self._one_by_one()
        return _table(self.places, self._times())

    def _times(self) -> array[int]:
        times = array("q")
        for rows in self._parts:
            if isinstance(rows.timestamps, int):
                times += array("q", [rows.timestamps]) * rows.length
            else:
                times.frombytes(memoryview(rows.timestamps).cast("B"))
        return times

    def _one_by_one(self) -> pa.Table:
        places, times = self.places, self._times()
        slots = memoryview(places.slots).cast("i")
        indices = memoryview(places.indices).cast("i")
        done: dict[int, RecordMetadata] = {}
        for row in range(places.count):
            receipt = places.receipts[slots[row]]
            delivery = Delivery(receipt, indices[row], times[row])
            error = delivery.exception()
            if error is None:
                done[row] = delivery.result()
            else:
                self._failures[row] = error
        if self._failures:
            raise DeliveriesFailed.of(self._failures, done)
        return _table_of(list(done.values()))


def _table(places: Places, times: array[int]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    count, receipts = places.count, places.receipts
    slots, indices, timestamps = (
        pa.Array.from_buffers(kind, count, [None, pa.py_buffer(numbers)])
        for kind, numbers in (
            (pa.int32(), places.slots),
            (pa.int32(), places.indices),
            (pa.int64(), times),
        )
    )
    bases = pa.array([_known(receipt.base_offset) for receipt in receipts], pa.int64())
    appended = [_known(receipt.log_append_time) for receipt in receipts]
    if any(time is not None for time in appended):
        timestamps = pc.coalesce(pa.array(appended, pa.int64()).take(slots), timestamps)
    return _columns(
        pa.array([receipt.partition for receipt in receipts], pa.int32()).take(slots),
        pc.add(bases.take(slots), indices),
        timestamps,
    )


def _table_of(metas: Sequence[RecordMetadata]) -> pa.Table:
    import pyarrow as pa

    return _columns(
        pa.array([meta.partition for meta in metas], pa.int32()),
        pa.array([_known(meta.offset) for meta in metas], pa.int64()),
        pa.array([meta.timestamp for meta in metas], pa.int64()),
    )


def _columns(partition: pa.Array, offset: pa.Array, timestamp: pa.Array) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp.view(pa.timestamp("ms", tz="UTC")),
        }
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None
