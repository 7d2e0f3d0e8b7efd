"""Records as columns in the memory layout of Arrow: the pure twin.

The layout is that of Arrow's ``binary`` arrays: the offsets at which values begin and
end, the values one after the other, and a bit per value that is 0 for null. Numbers are
in the byte order of the machine.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

from kafkaio._records._cursor import RecordCursor
from kafkaio._records._layout import (
    HEADER_OVERHEAD,
    MOST_BYTES,
    NO_END,
    ONE_RECORD,
    BinaryColumn,
    BinaryView,
    BytesLike,
    Columns,
    Destinations,
    HeaderColumns,
    HeaderView,
    Origin,
    PlainRecord,
    Wanted,
)
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import RecordWriter, decode_records
from kafkaio.errors import ArgumentValueError, UsageError
from kafkaio.types import Header

__all__ = [
    "ColumnsBuilder",
    "Rows",
    "column_partitions",
]

_MAX_INT64 = 2**63 - 1
_USUAL = Wanted()


class ColumnsBuilder:
    """Collects the records of many batches as columns.

    Args:
        wanted: which columns to collect.
        limit: the most bytes of records, as they are encoded.

    Attributes:
        length: number of records so far.
        size: their bytes, as they are encoded, with those of records left out.

    Raises:
        UsageError: ``limit`` is more than columns can hold.
    """

    __slots__ = ("_limit", "_records", "_wanted", "length", "size")

    def __init__(self, wanted: Wanted = _USUAL, *, limit: int = MOST_BYTES) -> None:
        if limit > MOST_BYTES:
            raise UsageError(f"columns hold at most {MOST_BYTES} bytes, not {limit}")
        self._wanted = wanted
        # A name that is not UTF-8 can take three times its bytes with U+FFFD.
        self._limit = min(limit, MOST_BYTES // 3) if wanted.headers else limit
        self._clear()

    def _clear(self) -> None:
        self._records: list[Any] = []
        self.size: int = 0
        self.length: int = 0

    def add(
        self,
        data: BytesLike,
        position: int,
        count: int,
        origin: Origin,
        end: int = NO_END,
    ) -> bool:
        """Add the records that `decode_records` returns for the same arguments.

        Args:
            data: holds the records; nothing refers to it afterwards.
            position: where they begin; they fill the data to its end.
            count: the number of records.
            origin: what they have in common.
            end: records from this offset on are left out.

        Returns:
            False if they would exceed the limit: nothing was added. Call `finish`, then
            add them again.

        Raises:
            CorruptRecord: as `decode_records`. Nothing was added.
            UsageError: these records alone exceed the limit.
        """
        size = len(data) - position
        if self.size + size > self._limit:
            if not self.size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        records = decode_records(bytes(data), position, count, origin)
        if end <= origin.base_offset + origin.last_offset_delta:
            records = [record for record in records if record.offset < end]
        self.size += size
        self._records += records
        self.length += len(records)
        return True

    def add_cursor(self, cursor: RecordCursor) -> bool:
        """Add the records that a cursor has left, without moving the cursor.

        Returns:
            False if they might exceed the limit: nothing was added.

        Raises:
            UsageError: these records alone exceed the limit.
        """
        size = cursor.bytes_left
        if self.size + size > self._limit:
            if not self.size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        self._records += cursor.copy()
        self.size += size
        self.length += cursor.remaining
        return True

    def reserve(self, count: int, size: int) -> None:
        """Allocate memory ahead for ``count`` records with ``size`` bytes of values.

        It is a hint, which saves growing: it does nothing beyond the limit, and nothing
        in this pure codec.
        """

    def finish(self) -> Columns:
        """Return the columns, and start again with none."""
        records, wanted = self._records, self._wanted
        offsets = timestamps = keys = values = headers = None
        if wanted.offsets:
            offsets = bytearray(array("q", [record.offset for record in records]))
        if wanted.timestamps:
            times = [record.timestamp for record in records]
            timestamps = bytearray(array("q", times))
        if wanted.keys:
            keys = _binary_column([record.key for record in records])
        if wanted.values:
            values = _binary_column([record.value for record in records])
        if wanted.headers:
            headers = _header_columns([record.headers for record in records])
        timeless = sum(record.timestamp == -1 for record in records)
        columns = Columns(
            self.length,
            offsets,
            timestamps,
            keys,
            values,
            headers,
            timeless if wanted.timestamps else 0,
        )
        self._clear()
        return columns


def _binary_column(values: list[bytes | None]) -> BinaryColumn:
    null_count = values.count(None)
    validity = None
    if null_count:
        validity = bytearray((len(values) + 7) // 8)
        for index, value in enumerate(values):
            if value is not None:
                validity[index >> 3] |= 1 << (index & 7)
    offsets = array("i", [0, *accumulate(len(value or b"") for value in values)])
    data = bytearray().join(value for value in values if value)
    return BinaryColumn(validity, bytearray(offsets), data, null_count)


def _header_columns(headers: list[tuple[Header, ...]]) -> HeaderColumns:
    pairs = [pair for each in headers for pair in each]
    return HeaderColumns(
        bytearray(array("i", [0, *accumulate(len(each) for each in headers)])),
        _binary_column([name.encode() for name, _ in pairs]),
        _binary_column([value for _, value in pairs]),
    )


class _Values:
    """The values of a column; each is checked when it is read."""

    __slots__ = ("_bits", "_data", "_first", "_offsets")

    def __init__(self, view: BinaryView, stop: int) -> None:
        self._bits, self._offsets, self._data, self._first = _checked(view, stop)

    def __getitem__(self, row: int) -> bytes | None:
        index = self._first + row
        if self._bits is not None and not self._bits[index >> 3] >> (index & 7) & 1:
            return None
        at, end = self._offsets[index], self._offsets[index + 1]
        if not 0 <= at <= end <= len(self._data):
            raise UsageError(f"value {row} of a column lies outside its data")
        return bytes(self._data[at:end])


def _checked(
    view: BinaryView, stop: int
) -> tuple[memoryview | None, memoryview, memoryview, int]:
    validity, offsets, data, first, width = view
    bits = None if validity is None else memoryview(validity).cast("B")
    if width not in {4, 8} or first < 0:
        raise UsageError(f"a column cannot begin at {first} with width {width}")
    numbers = memoryview(offsets).cast("B")
    end = first + stop
    if len(numbers) // width <= end or (
        bits is not None and len(bits) < (end + 7) // 8
    ):
        raise UsageError(f"a column has fewer than {stop} values")
    numbers = numbers[: len(numbers) // width * width]
    places = numbers.cast("i" if width == 4 else "q")
    return bits, places, memoryview(data).cast("B"), first


def _numbers(column: BytesLike, length: int, width: int = 8) -> memoryview:
    data = memoryview(column).cast("B")
    if len(data) // width < length:
        raise UsageError(f"a column has fewer than {length} values")
    return data[: length * width].cast("q" if width == 8 else "i")


class _Headers:
    """The headers of rows; those of a row are checked when they are read."""

    __slots__ = ("_count", "_ends", "_names", "_values")

    def __init__(self, view: HeaderView, length: int) -> None:
        self._ends = _numbers(view.ends, length)
        self._count = self._ends[-1] if length else 0
        if self._count < 0:
            raise UsageError(f"headers cannot end at {self._count}")
        self._names = _Values(view.names, self._count)
        self._values = view.values and _Values(view.values, self._count)

    def __getitem__(self, row: int) -> tuple[Header, ...]:
        first = self._ends[row - 1] if row else 0
        end = self._ends[row]
        if not 0 <= first <= end <= self._count:
            raise UsageError(f"the headers of row {row} lie outside their column")
        return tuple(self._header(at) for at in range(first, end))

    def _header(self, at: int) -> Header:
        name = self._names[at]
        if name is None:
            raise UsageError(f"header {at} of a column has no name")
        return name.decode(), None if self._values is None else self._values[at]


class _Destinations:
    """Where rows are to go; the destination of a row is checked when it is read."""

    __slots__ = ("_numbers", "_partitions", "_topics")

    def __init__(self, given: Destinations, length: int) -> None:
        topics, numbers, partitions = given
        if type(topics) is not tuple or {type(name) for name in topics} - {str}:
            raise UsageError("the names of topics must be a tuple of str")
        self._topics = topics
        self._numbers = None if numbers is None else _numbers(numbers, length, 4)
        self._partitions = (
            None if partitions is None else _numbers(partitions, length, 4)
        )

    def __getitem__(self, row: int) -> tuple[str | None, int | None]:
        topic = None
        if self._numbers is not None:
            number = self._numbers[row]
            if not 0 <= number < len(self._topics):
                raise UsageError(f"row {row} has no topic: there is no number {number}")
            topic = self._topics[number]
        partition = -1 if self._partitions is None else self._partitions[row]
        return topic, partition if partition >= 0 else None


class Rows:
    """Rows of columns that are to become records.

    Args:
        length: number of rows.
        timestamps: 64-bit integers, milliseconds since the Unix epoch, or one number
            for all rows.
        keys: the keys; None if no row has one.
        values: the values; None if no row has one.
        headers: the headers; None if no row has any.
        destinations: their own topics and partitions; None if no row has either.

    Attributes:
        length: number of rows.
        timestamps: as given.

    Raises:
        UsageError: a column is too short, or its layout is impossible.
    """

    __slots__ = (
        "_destinations",
        "_headers",
        "_keys",
        "_time",
        "_times",
        "_values",
        "length",
        "timestamps",
    )

    def __init__(
        self,
        length: int,
        timestamps: int | BytesLike,
        keys: BinaryView | None,
        values: BinaryView | None,
        headers: HeaderView | None = None,
        destinations: Destinations | None = None,
    ) -> None:
        if length < 0:
            raise UsageError(f"there cannot be {length} rows")
        self.length: int = length
        self.timestamps: int | BytesLike = timestamps
        self._times: memoryview | None = None
        self._time = 0
        if isinstance(timestamps, int):
            self._time = _possible(timestamps)
        else:
            self._times = _numbers(timestamps, length)
        self._keys = None if keys is None else _Values(keys, length)
        self._values = None if values is None else _Values(values, length)
        self._headers = None if headers is None else _Headers(headers, length)
        self._destinations = (
            None if destinations is None else _Destinations(destinations, length)
        )

    def check(self) -> int:
        """Check every row, so that none can fail later.

        Returns:
            The size of the largest one by ``BatchBuilder.size_of``; 0 without rows.

        Raises:
            UsageError: a column is inconsistent, a timestamp is negative or impossible,
                a header has no name, or there is no such topic.
        """
        largest = 0
        for row in range(self.length):
            time, key, value, headers = self.record(row)
            self.destination(row)
            size = ONE_RECORD + len(key or b"") + len(value or b"")
            for name, content in headers:
                size += HEADER_OVERHEAD + len(name.encode()) + len(content or b"")
            largest = max(largest, size)
            if time < 0:
                raise ArgumentValueError(f"a record cannot have the timestamp {time}")
        return largest

    def record(self, row: int) -> PlainRecord:
        """Return the timestamp, key, value and headers of one row.

        Raises:
            UsageError: there is no such row, or it is invalid.
        """
        if not 0 <= row < self.length:
            raise UsageError(f"there is no row {row}")
        key = None if self._keys is None else self._keys[row]
        value = None if self._values is None else self._values[row]
        time = self._time if self._times is None else _possible(self._times[row])
        return time, key, value, () if self._headers is None else self._headers[row]

    def destination(self, row: int) -> tuple[str | None, int | None]:
        """Return the topic and the partition of one row, None where it has none.

        Raises:
            UsageError: there is no such row, or its topic has no name.
        """
        if not 0 <= row < self.length:
            raise UsageError(f"there is no row {row}")
        return (None, None) if self._destinations is None else self._destinations[row]

    def reach(self) -> dict[str | None, int]:
        """Return the highest partition that rows name, for each of their topics.

        Returns:
            By topic, None for rows without one; -1 if none of its rows names one.

        Raises:
            UsageError: the topic of a row has no name.
        """
        highest: dict[str | None, int] = {}
        for row in range(self.length):
            topic, partition = self.destination(row)
            at = -1 if partition is None else partition
            highest[topic] = max(highest.get(topic, -1), at)
        return highest

    def append_to(self, writer: RecordWriter, start: int = 0) -> int:
        """Append rows from ``start`` on to a batch until it is full.

        Returns:
            The number of rows appended.

        Raises:
            UsageError: there are no such rows, a column is inconsistent, or a timestamp
                is impossible. Rows before it were appended.
        """
        if not 0 <= start <= self.length:
            raise UsageError(f"there are no rows from {start} to {self.length}")
        for row in range(start, self.length):
            if writer.try_append(*self.record(row)) < 0:
                return row - start
        return self.length - start


def _possible(timestamp: int) -> int:
    if not -1 <= timestamp < _MAX_INT64:
        raise ArgumentValueError(f"a record cannot have the timestamp {timestamp}")
    return timestamp


def column_partitions(keys: BinaryView, start: int, stop: int, count: int) -> bytearray:
    """Return the partition of each key, as 32-bit integers; -1 for rows without a key.

    Args:
        keys: the column of keys.
        start: the first row.
        stop: the row after the last one.
        count: number of partitions.

    Raises:
        UsageError: the column has no such rows, or is inconsistent.
    """
    if not 0 <= start <= stop or count < 1:
        raise UsageError(f"there are no rows from {start} to {stop} for {count}")
    found = _Values(keys, stop)
    partitions = array("i", [-1]) * (stop - start)
    for row in range(start, stop):
        key = found[row]
        if key is not None:
            partitions[row - start] = key_partition(key, count)
    return bytearray(partitions)
