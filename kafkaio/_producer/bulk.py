"""Many records in one call: the values of `send_many` and the rows of a table.

The calls check all records before the first is taken in, take them in, and remember
where each went without an object for each. Where all succeeded, as is usual, the result
is computed from the receipts of the batches; else `DeliveriesFailed` has the outcome of
each record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import accumulate, chain, compress, islice
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, TypeVar, overload

from kafkaio._arguments import check_partition, check_topic, type_name
from kafkaio._machines.accumulator import PlainRecord, Receipt
from kafkaio._named_tuple import NamedTuple
from kafkaio._producer.arguments import Draft, RecordMaker, TopicLike
from kafkaio._producer.delivery import Delivery, settled, unsettled
from kafkaio._public import public
from kafkaio._records._impl import RowReceipts, Rows, metadata_run
from kafkaio._records.builder import BatchBuilder
from kafkaio._topic import Topic
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokerError,
    RecordTooLarge,
    UsageError,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.types import NewRecord, RecordMetadata

if TYPE_CHECKING:
    from contextvars import Context

    import pyarrow as pa

    from kafkaio._records._callbacks import DoneCallbacks, LoopPort


MadeT = TypeVar("MadeT")


@public("kafkaio")
class DeliveriesFailed(ExceptionGroup[Exception]):
    """Some records of one ``send_many``, or some rows of one table, failed.

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
        """Make the group from the outcome of each record."""
        failures = dict(sorted(failures.items()))
        each = {id(error): error for error in failures.values()}
        return cls._made("records", failures, dict(delivered), list(each.values()))

    @classmethod
    def of_rows(
        cls,
        failures: Mapping[int, Exception],
        delivered: Mapping[int, RecordMetadata],
        errors: Sequence[Exception],
    ) -> Self:
        """Make the group for a table.

        Args:
            failures: the error of each row that failed, ascending.
            delivered: where the other rows were written.
            errors: the errors, each once.
        """
        return cls._made("rows", failures, delivered, errors)

    @classmethod
    def _made(
        cls,
        what: str,
        failures: Mapping[int, Exception],
        delivered: Mapping[int, RecordMetadata],
        errors: Sequence[Exception],
    ) -> Self:
        total = len(failures) + len(delivered)
        first = list(islice(failures, 11))
        listed = ", ".join(map(str, first[:10])) + (", ..." if len(first) > 10 else "")
        group = cls(
            f"{len(failures)} of {total} {what} failed (index {listed}); "
            f"the first: {failures[first[0]]}",
            errors,
        )
        group.failures = failures
        group.delivered = delivered
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
    topic: TopicLike, values: Sequence[object], maker: RecordMaker
) -> Iterable[tuple[int | None, PlainRecord | Draft]]:
    """Check values for a topic; return the partition and the record of each, in turn.

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
    make: Callable[..., PlainRecord | Draft] = maker.make_in_context
    if type(topic) is str and maker.is_simple:
        make = maker.make
    # A copy: the caller may change a list while a serializer is awaited.
    return (made(make, topic, value) for value in list(values))


def made(
    make: Callable[..., MadeT], topic: TopicLike, value: object
) -> tuple[int | None, MadeT]:
    """Return the partition and the record of a value, or of a `kafkaio.NewRecord`."""
    if not isinstance(value, NewRecord):
        return None, make(topic, None, None, value, (), None)
    record = make(
        topic,
        value.partition,
        value.key,
        value.value,
        value.headers,
        value.timestamp,
    )
    return value.partition, record


#: Topic, partition, offset of the first record (-1 if unknown), number of records,
#: their timestamp.
Run: TypeAlias = tuple[str, int, int, int, int]


class Runs:
    """Where records were written, as runs of records that follow each other."""

    __slots__ = ("_ends", "_runs")

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)
        # For each run, the number of records up to its end.
        self._ends = list(accumulate(run[3] for run in self._runs))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def at(self, place: int) -> RecordMetadata:
        """Return where the record of this index was written."""
        number = bisect_right(self._ends, place)
        topic, partition, offset, count, timestamp = self._runs[number]
        if offset >= 0:
            offset += place - (self._ends[number] - count)
        return RecordMetadata(topic, partition, offset, timestamp)

    def __iter__(self) -> Iterator[RecordMetadata]:
        for run in self._runs:
            yield from metadata_run(*run)


class Places:
    """Where records were written, each by itself.

    Args:
        places: their receipts, which are all acknowledged, and their timestamps.
    """

    __slots__ = ("_indices", "_slots", "_times", "_written")

    def __init__(self, places: RowReceipts) -> None:
        # Not the receipts themselves, which refer to the producer.
        self._written = [
            (receipt.topic, receipt.partition, *receipt.written(0, -1))
            for receipt in places.receipts
        ]
        count = places.count
        self._slots = memoryview(places.slots).cast("i")[:count]
        self._indices = memoryview(places.indices).cast("i")[:count]
        self._times = memoryview(places.times).cast("q")[:count]

    def __len__(self) -> int:
        return len(self._slots)

    def at(self, place: int) -> RecordMetadata:
        """Return where the record of this index was written."""
        topic, partition, base, appended = self._written[self._slots[place]]
        return RecordMetadata(
            topic,
            partition,
            base + self._indices[place] if base >= 0 else -1,
            appended if appended >= 0 else self._times[place],
        )

    def __iter__(self) -> Iterator[RecordMetadata]:
        return map(self.at, range(len(self)))


class Written(Sequence[RecordMetadata]):
    """A sequence of `RecordMetadata` that makes each item when it is used.

    It is read-only, holds no reference to the producer, and equals any sequence with
    the same items. A slice is a list.
    """

    __slots__ = ("_places",)

    def __init__(self, places: Runs | Places) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int, /) -> RecordMetadata: ...

    @overload
    def __getitem__(self, at: slice, /) -> list[RecordMetadata]: ...

    def __getitem__(self, at: int | slice, /) -> RecordMetadata | list[RecordMetadata]:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self._places.at(place) for place in places]
        return self._places.at(places)

    def __iter__(self) -> Iterator[RecordMetadata]:
        return iter(self._places)

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
    """The values that one `send_many` has taken in so far.

    Attributes:
        count: values taken in.
    """

    def __init__(self) -> None:
        self.count: int = 0
        # Runs of records with one receipt: the receipt, the index of the first record
        # there, their number, their timestamp.
        self._runs: list[tuple[Receipt, int, int, int]] = []
        self._rest: tuple[int, Exception] | None = None

    def add(self, delivery: Delivery) -> None:
        """Add the next value."""
        receipt, index, timestamp = delivery.place()
        self.add_run((receipt, index, 1, timestamp))

    def add_run(self, run: tuple[Receipt, int, int, int]) -> None:
        """Add the next values, as `OpenBatches.take_values` returns them."""
        self._runs.append(run)
        self.count += run[2]

    def fail_rest(self, total: int, error: Exception) -> None:
        """Fail the rest of ``total`` values, which could not be taken in."""
        self._rest = total - self.count, error

    async def outcome(self) -> Sequence[RecordMetadata]:
        """Wait for all, and return where each was written.

        Raises:
            DeliveriesFailed: some failed.
        """
        await settled([run[0] for run in self._runs])
        return self.settled()

    def settled(self) -> Sequence[RecordMetadata]:
        """Return where each was written; all are settled.

        Raises:
            DeliveriesFailed: some failed.
        """
        if self._rest is None and _all_written(run[0] for run in self._runs):
            return Written(Runs([_written(run) for run in self._runs]))
        return _one_by_one(
            (
                Delivery(receipt, index, timestamp)
                for receipt, first, count, timestamp in self._runs
                for index in range(first, first + count)
            ),
            self._rest,
        )


class SentRecords:
    """The records of any shape that one `send_many` has taken in so far.

    Args:
        length: how many there are.

    Attributes:
        places: where each went.
    """

    def __init__(self, length: int) -> None:
        self.places: RowReceipts = RowReceipts(length, has_times=True)
        self._length = length
        self._rest: tuple[int, Exception] | None = None

    def add(self, delivery: Delivery) -> None:
        """Add the next record, which was taken in by itself."""
        self.places.add(*delivery.place())

    def fail_rest(self, error: Exception) -> None:
        """Fail the records that could not be taken in."""
        self._rest = self._length - self.places.count, error

    async def outcome(self) -> Sequence[RecordMetadata]:
        """Wait for all, and return where each was written.

        Raises:
            DeliveriesFailed: some failed.
        """
        places = self.places
        await settled(places.receipts)
        if self._rest is None and _all_written(places.receipts):
            return Written(Places(places))
        slots = memoryview(places.slots).cast("i")[: places.count]
        indices = memoryview(places.indices).cast("i")
        times = memoryview(places.times).cast("q")
        return _one_by_one(
            (
                Delivery(places.receipts[slot], indices[number], times[number])
                for number, slot in enumerate(slots)
            ),
            self._rest,
        )


def _all_written(receipts: Iterable[Receipt]) -> bool:
    return all(receipt.error is None and receipt.moved is None for receipt in receipts)


def _one_by_one(
    deliveries: Iterable[Delivery], rest: tuple[int, Exception] | None
) -> Sequence[RecordMetadata]:
    done: dict[int, RecordMetadata] = {}
    failures: dict[int, Exception] = {}
    number = 0
    for number, delivery in enumerate(deliveries, 1):
        error = delivery.exception()
        if error is None:
            done[number - 1] = delivery.result()
        else:
            failures[number - 1] = error
    if rest is not None:
        count, error = rest
        failures |= dict.fromkeys(range(number, number + count), error)
    if failures:
        raise DeliveriesFailed.of(failures, done)
    return Written(
        Runs(
            (made.topic, made.partition, made.offset, 1, made.timestamp)
            for made in done.values()
        )
    )


def _written(run: tuple[Receipt, int, int, int]) -> Run:
    receipt, first, count, sent_with = run
    offset, timestamp = receipt.written(first, sent_with)
    return receipt.topic, receipt.partition, offset, count, timestamp


# ---- rows ----------------------------------------------------------------------------


class TableArguments(NamedTuple):
    """How the rows of a table become records: as in `Producer.enqueue_table`."""

    topic: str | None
    partition: int | None
    key: str | None
    value: str | None
    headers: str | None
    timestamp: str | None
    topic_column: str | None
    partition_column: str | None

    def check(self) -> None:
        """Check where the rows are to go.

        Raises:
            ArgumentTypeError: the topic is not a str (nor may it be a
                `kafkaio.Topic`), or the partition not an int.
            ArgumentValueError: the topic is missing, empty or named twice, or the
                partition is negative or named twice.
        """
        if isinstance(self.topic, Topic):
            raise ArgumentTypeError(
                "topic must be str, not Topic: the columns of a table are written as "
                f"they are, without serdes; pass the name, {self.topic.name!r}"
            )
        if self.topic is not None:
            check_topic(self.topic)
        elif self.topic_column is None:
            raise ArgumentValueError("topic is missing: give a topic or a topic_column")
        if self.partition is not None:
            check_partition(self.partition)
        for name in ("topic", "partition"):
            column = f"{name}_column"
            if getattr(self, name) is not None and getattr(self, column) is not None:
                raise ArgumentValueError(f"give {name} or {column}, not both")


class TableRows:
    """The rows of one table, checked, before they are taken in.

    Args:
        table: the table.
        arguments: how its rows become records.
        now: milliseconds since the Unix epoch: the timestamp of rows without one.
        largest: size of the largest record, in bytes.

    Attributes:
        parts: the rows, one chunk of memory at a time.
        length: their number.
        reach: the highest partition that the rows name, for each of their topics; 0
            if they name none.

    Raises:
        ArgumentTypeError: the table, or an argument, has the wrong type.
        ArgumentValueError: a column does not exist, or a column, or a row, cannot
            become records.
        RecordTooLarge: a row can never be sent with the limits that are set.
    """

    def __init__(
        self,
        table: pa.Table | pa.RecordBatch,
        arguments: TableArguments,
        now: int,
        largest: int,
    ) -> None:
        from kafkaio.arrow import rows_from_table

        arguments.check()
        self._arguments = arguments
        self.parts: list[Rows] = list(
            rows_from_table(
                table,
                now=now,
                key=arguments.key,
                value=arguments.value,
                headers=arguments.headers,
                timestamp=arguments.timestamp,
                topic=arguments.topic_column,
                partition=arguments.partition_column,
            )
        )
        self.length: int = sum(rows.length for rows in self.parts)
        self._table = table
        # The bytes of the largest record.
        self._largest = 0
        self.reach: dict[str, int] = {}
        if arguments.topic is not None:
            self._reaches(arguments.topic, arguments.partition or 0)
        start = 0
        for rows in self.parts:
            self._check(rows, start, largest)
            start += rows.length
            for topic, partition in rows.reach().items():
                # `TableArguments.check` requires the argument where rows name no topic.
                self._reaches(topic or arguments.topic or "", partition)

    def has_choice(self, *, ignore_keys: bool) -> bool:
        """Whether there may be rows that have neither a partition nor a key.

        Args:
            ignore_keys: whether rows with keys are treated like those without.
        """
        wanted = self._arguments
        return (
            wanted.partition is None
            and (ignore_keys or self._has_nulls(wanted.key))
            and self._has_nulls(wanted.partition_column)
        )

    def _has_nulls(self, column: str | None) -> bool:
        return column is None or bool(self._table[column].null_count)

    def size_of(self, part: Rows) -> int:
        """Return about how many bytes the records of some rows take up."""
        most = part.length * (self._largest - _RECORD_OVERHEAD)
        if most <= _SMALL:
            return most
        # Asking Arrow for the size takes as long as taking in fifty rows.
        wanted = self._arguments
        names = (wanted.key, wanted.value, wanted.headers)
        size: int = sum(self._table[name].nbytes for name in names if name is not None)
        return part.length * (size // self.length + _RECORD_BYTES)

    def _reaches(self, topic: str, partition: int) -> None:
        least = self._arguments.partition or 0
        self.reach[topic] = max(self.reach.get(topic, least), partition)

    def _check(self, rows: Rows, start: int, largest: int) -> None:
        try:
            size = rows.check()
        except ArgumentValueError as error:
            times = memoryview(rows.timestamps).cast("B").cast("q")  # type: ignore[arg-type]  # one time for all rows is right
            row = next(n for n, time in enumerate(times) if not 0 <= time < _TIME_END)
            raise ArgumentValueError(
                f"column {self._arguments.timestamp!r}, row {start + row}: {error}"
            ) from None
        self._largest = max(self._largest, size)
        if size > largest:
            row = next(n for n in range(rows.length) if _size_of(rows, n) > largest)
            raise RecordTooLarge(
                f"row {start + row} takes up to {_size_of(rows, row)} bytes with its "
                f"batch header; max_request_size and buffer_memory allow {largest}"
            )

    def located(
        self, error: BrokerError, partition_count: Callable[[str], int | None]
    ) -> BrokerError:
        """Return the error of a topic or partition, with the row that names it.

        Args:
            error: the reason why a topic or partition could not be described.
            partition_count: returns how many partitions a topic has, None if unknown.
        """
        wanted = self._arguments
        if wanted.topic_column is None and wanted.partition_column is None:
            return error
        start = 0
        for rows in self.parts:
            for row in range(rows.length):
                topic, partition = rows.destination(row)
                topic = topic or wanted.topic or ""
                count = partition_count(topic) or 0
                if (partition or 0) < count:
                    continue
                column = wanted.partition_column if count else wanted.topic_column
                what = f"{topic!r} has no partition {partition}"
                why = f"{what}, only 0 to {count - 1}" if count else str(error)
                name = f"column {column!r}, " if column else ""
                message = f"{name}row {start + row}: {why}"
                return broker_error(error.code, message)
            start += rows.length
        return error


#: Bytes of a small record, without its key and value.
_RECORD_BYTES = 8
#: By how much `BatchBuilder.size_of` is higher than that, for a batch of one record.
_RECORD_OVERHEAD = BatchBuilder.size_of(None, None, ()) - _RECORD_BYTES
#: Rows of so few bytes count as larger than they are: their sizes are not asked for.
_SMALL = 8_192
#: Timestamps are less than this.
_TIME_END = 2**63 - 1


def _size_of(rows: Rows, row: int) -> int:
    return BatchBuilder.size_of(*rows.record(row)[1:])


@public("kafkaio")
class TableDelivery:
    """The delivery of the rows of one table; see `Producer.enqueue_table`.

    Await it for the outcome: once, repeatedly, from several tasks, or never. Cancelling
    one await affects neither the rows nor other awaits. The outcome is known at the
    latest when ``delivery_timeout_ms`` has passed or the producer is closed. It keeps
    the receipts of batches and eight bytes per row, and not the table.
    """

    __slots__ = (
        "_callbacks",
        "_is_seen",
        "_length",
        "_loop",
        "_places",
        "_rest",
        "_times",
        "_with_topics",
    )

    def __init__(self, rows: TableRows, loop: LoopPort, *, with_topics: bool) -> None:
        self._length = rows.length
        self._places = RowReceipts(rows.length)
        # The timestamps of rows, as runs: one number for all, or numbers.
        self._times = [_own_times(part) for part in rows.parts]
        # The error of the rows that were not taken in, which are not in `_places`.
        self._rest: Exception | None = None
        self._loop = loop
        self._callbacks: DoneCallbacks | None = None
        self._with_topics = with_topics
        self._is_seen = False

    def __await__(self) -> Generator[object, None, pa.Table]:
        """Wait until all rows are acknowledged or have failed.

        Returns:
            A table with a row for each: ``partition``, ``offset`` (null with
            ``acks=0``) and ``timestamp``; with ``topic_column``, ``topic`` as well.

        Raises:
            DeliveriesFailed: some rows failed: an exception group of their errors. It
                has the error of each row that failed, and the place of each other.
            ClosedError: another event loop runs, or another process.
        """
        if not self.is_done:
            self._loop.check()
        yield from settled(self._places.receipts).__await__()
        return self.result()

    def __len__(self) -> int:
        return self._length

    @property
    def is_done(self) -> bool:
        """Whether the outcome of all rows is known."""
        return self._unsettled() is None

    def done(self) -> bool:
        """Return `is_done`, as a future does."""
        return self.is_done

    def cancelled(self) -> bool:
        """Return False: rows that were taken in cannot be cancelled."""
        return False

    def add_done_callback(
        self,
        fn: Callable[[TableDelivery], object],
        /,
        *,
        context: Context | None = None,
    ) -> None:
        """Call a function with this delivery, soon after all outcomes are known.

        As `Delivery.add_done_callback`.

        Args:
            fn: gets the delivery.
            context: the context to call it in; a copy of the present one by default.

        Raises:
            ClosedError: another event loop runs than the producer's, or another
                process.
        """
        from kafkaio._records._callbacks import DoneCallbacks

        self._loop.check()
        if self._callbacks is None:
            self._callbacks = DoneCallbacks(self, self._loop, self._unsettled)
        self._callbacks.add(fn, context)

    def remove_done_callback(self, fn: Callable[[TableDelivery], object], /) -> int:
        """Do not call a function; return how often it had been added."""
        return 0 if self._callbacks is None else self._callbacks.remove(fn)

    def _unsettled(self) -> Receipt | None:
        return unsettled(self._places.receipts)

    @property
    def written(self) -> int:
        """How many rows are acknowledged by now."""
        return self._count(lambda receipt: receipt.error is None)

    @property
    def failed(self) -> int:
        """How many rows have failed by now."""
        not_taken_in = self._length - self._places.count if self._rest else 0
        failed = self._count(lambda receipt: receipt.error is not None)
        return not_taken_in + failed

    def _count(self, fits: Callable[[Receipt], bool]) -> int:
        places = self._places
        self._follow()
        chosen = [receipt.is_settled and fits(receipt) for receipt in places.receipts]
        if all(chosen):
            return places.count
        slots = memoryview(places.slots).cast("i")[: places.count]
        return sum(map(chosen.__getitem__, slots)) if any(chosen) else 0

    def result(self) -> pa.Table:
        """Return where each row was written, without waiting.

        Raises:
            UsageError: the outcome is not known yet.
            DeliveriesFailed: some rows failed.
        """
        error = self.exception()
        if error is not None:
            raise error
        return _table(self._places, self._all_times(), with_topics=self._with_topics)

    def exception(self) -> DeliveriesFailed | None:
        """Return what ``await`` raises, None if all rows were written.

        Raises:
            UsageError: the outcome is not known yet.
        """
        if not self.is_done:
            raise UsageError("rows are still on their way: await their delivery")
        self._follow()
        receipts = self._places.receipts
        errors = [each.error for each in receipts if each.error is not None]
        if self._rest is not None:
            errors.append(self._rest)
        if not errors:
            return None
        failures = _RowErrors(self._places, self._length, self._rest)
        if not self._is_seen:
            self._is_seen = True
            failures.see()
        return DeliveriesFailed.of_rows(
            failures,
            _RowsWritten(self._places, self._all_times()),
            list({id(error): error for error in errors}.values()),
        )

    def __repr__(self) -> str:
        if self.is_done:
            state = f"{self.failed} failed" if self.failed else "written"
        else:
            state = f"{self.written} written, {self.failed} failed"
        return f"<TableDelivery of {self._length} rows, {state}>"

    # For the intake.

    @property
    def places(self) -> RowReceipts:
        """Where each row went; for kafkaio's own use."""
        return self._places

    def add(self, delivery: Delivery) -> None:
        """Add a row that was taken in by itself; for kafkaio's own use."""
        receipt, index, _ = delivery.place()
        self._places.add(receipt, index)

    def fail_rest(self, error: Exception) -> None:
        """Fail the rows that were not taken in; for kafkaio's own use."""
        self._rest = error

    def note_in(self, error: BaseException) -> None:
        """Note in an error how many rows were taken in; for kafkaio's own use."""
        count = self._places.count
        error.add_note(f"{count} of {self._length} rows of the table were taken in")

    # The rest.

    def _all_times(self) -> array[int]:
        times = array("q")
        for time, count in self._times:
            if isinstance(time, int):
                times += array("q", [time]) * count
            else:
                times.frombytes(time)
        return times

    def _follow(self) -> None:
        # Rows have another receipt if their batch was split, or if they had none.
        places = self._places
        receipts = places.receipts
        if all(receipt.moved is None for receipt in receipts):
            return
        slots = memoryview(places.slots).cast("i")
        indices = memoryview(places.indices).cast("i")
        known = {receipt: slot for slot, receipt in enumerate(receipts)}
        for row in range(places.count):
            receipt, index = receipts[slots[row]], indices[row]
            while receipt.moved is not None:
                receipt, index = receipt.moved[index]
            if receipt not in known:
                known[receipt] = len(receipts)
                receipts.append(receipt)
            slots[row], indices[row] = known[receipt], index


def _own_times(rows: Rows) -> tuple[int | bytes, int]:
    # A copy, because the timestamps are a view that would keep the table.
    times = rows.timestamps
    return (times if isinstance(times, int) else bytes(times)), rows.length


class _RowErrors(Mapping[int, Exception]):
    """The errors of rows; each is looked up when it is used."""

    def __init__(
        self, places: RowReceipts, length: int, rest: Exception | None
    ) -> None:
        self._errors = [receipt.error for receipt in places.receipts]
        self._slots = memoryview(places.slots).cast("i")
        self._places = places
        self._taken = places.count
        self._rest = rest
        self._end = length if rest is not None else self._taken
        self._length: int | None = None

    def __getitem__(self, row: int) -> Exception:
        error = self._rest if self._taken <= row < self._end else None
        if 0 <= row < self._taken:
            error = self._errors[self._slots[row]]
        if error is None:
            raise KeyError(row)
        return error

    def __iter__(self) -> Iterator[int]:
        failed = [error is not None for error in self._errors]
        marks = map(failed.__getitem__, self._slots[: self._taken])
        yield from chain(
            compress(range(self._taken), marks), range(self._taken, self._end)
        )

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def __repr__(self) -> str:
        return repr(dict(self))

    def see(self) -> None:
        """Note that the errors were read: they are not reported as lost."""
        indices = memoryview(self._places.indices).cast("i")
        for row in self:
            if row < self._taken:
                self._places.receipts[self._slots[row]].see(indices[row])


class _RowsWritten(Mapping[int, RecordMetadata]):
    """Where rows were written; each is made when it is used."""

    def __init__(self, places: RowReceipts, times: array[int]) -> None:
        self._places = places
        self._slots = memoryview(places.slots).cast("i")
        self._indices = memoryview(places.indices).cast("i")
        self._times = times
        self._length: int | None = None

    def __getitem__(self, row: int) -> RecordMetadata:
        if not 0 <= row < self._places.count:
            raise KeyError(row)
        receipt = self._places.receipts[self._slots[row]]
        if receipt.error is not None:
            raise KeyError(row)
        return Delivery(receipt, self._indices[row], self._times[row]).result()

    def __iter__(self) -> Iterator[int]:
        count = self._places.count
        written = [receipt.error is None for receipt in self._places.receipts]
        marks = map(written.__getitem__, self._slots[:count])
        yield from compress(range(count), marks)

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def __repr__(self) -> str:
        return repr(dict(self))


def _table(places: RowReceipts, times: array[int], *, with_topics: bool) -> pa.Table:
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
    partitions = pa.array([receipt.partition for receipt in receipts], pa.int32())
    columns = {
        "partition": partitions.take(slots),
        "offset": pc.add(bases.take(slots), indices),
        "timestamp": timestamps.view(pa.timestamp("ms", tz="UTC")),
    }
    if with_topics:
        names = pa.array([receipt.topic for receipt in receipts], pa.string())
        columns = {"topic": names.dictionary_encode().take(slots), **columns}
    return pa.table(columns)


def _known(number: int) -> int | None:
    return number if number >= 0 else None
