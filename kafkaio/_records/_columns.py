"""Records as columns in the memory layout of Arrow: the pure twin.

The layout is that of Arrow's ``binary`` arrays: the offsets at which values begin and
end, the values one after the other, and a bit per value that is 0 for null. Numbers are
in the byte order of the machine.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate
from typing import Any, Self

from kafkaio._public import public
from kafkaio._records._cursor import RecordCursor
from kafkaio._records._layout import (
    HEADER_OVERHEAD,
    MIN_RECORD_SIZE,
    MOST_BYTES,
    NO_END,
    ONE_RECORD,
    BinaryColumn,
    BinaryView,
    BytesLike,
    Columns,
    DecodedColumns,
    Destinations,
    HeaderColumns,
    HeaderView,
    Origin,
    PlainRecord,
)
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import (
    RecordWriter,
    decode_records,
    long_varint,
    read_fields,
)
from kafkaio.errors import ArgumentValueError, CorruptRecord, UsageError
from kafkaio.types import Header

_MAX_INT64 = 2**63 - 1
_USUAL = DecodedColumns()
# A base timestamp within +-2**62 plus a delta within +-2**61 fits in 64 bits.
_SAFE_BASE = 2**62
# The greatest raw value of a varint of two bytes. Offset and timestamp deltas of usual
# batches have one or two.
_TWO_BYTES = 2**14 - 1


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

    __slots__ = ("_limit", "_rows", "_wanted", "length", "size")

    def __init__(
        self, wanted: DecodedColumns = _USUAL, *, limit: int = MOST_BYTES
    ) -> None:
        if limit > MOST_BYTES:
            raise UsageError(f"columns hold at most {MOST_BYTES} bytes, not {limit}")
        self._wanted = wanted
        # A name that is not UTF-8 is decoded with U+FFFD, which takes three bytes for
        # each wrong one, and the offsets of the names have 32 bits.
        self._limit = min(limit, MOST_BYTES // 3) if wanted.headers else limit
        self._clear()

    def _clear(self) -> None:
        self._rows = _Rows()
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
            origin: the facts that they share.
            end: records from this offset on are left out.

        Returns:
            False if they would exceed the limit: nothing was added. Call `finish`, then
            add them again.

        Raises:
            CorruptRecord: as `decode_records`. Nothing was added.
            UsageError: these records alone exceed the limit.
        """
        # By encoded bytes, of which no column of keys or values can have more.
        size = len(data) - position
        if self.size + size > self._limit:
            if not self.size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        # All records are decoded before the first one is added, so that a corrupt one
        # leaves the columns as they were.
        rows = _rows_of(bytes(data), position, count, origin)
        if end <= origin.base_offset + origin.last_offset_delta:
            rows.leave_out(end)
        self.size += size
        self.length += len(rows.offsets)
        self._rows.add(rows)
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
        rows = _Rows.of(cursor.copy())
        self._rows.add(rows)
        self.size += size
        self.length += len(rows.offsets)
        return True

    def reserve(self, count: int, size: int) -> None:
        """Allocate memory ahead for ``count`` records with ``size`` bytes of values.

        It is a hint, which saves growing: it does nothing beyond the limit, and nothing
        in this pure codec.
        """

    def finish(self) -> Columns:
        """Return the columns, and start again with none."""
        rows, wanted = self._rows, self._wanted
        timestamps = rows.timestamps if wanted.timestamps else None
        columns = Columns(
            self.length,
            bytearray(array("q", rows.offsets)) if wanted.offsets else None,
            None if timestamps is None else bytearray(array("q", timestamps)),
            _binary_column(rows.keys) if wanted.keys else None,
            _binary_column(rows.values) if wanted.values else None,
            _header_columns(rows.headers) if wanted.headers else None,
            # -1 is Kafka's timestamp of a record without one.
            0 if timestamps is None else timestamps.count(-1),
        )
        self._clear()
        return columns


class _Rows:
    """The fields of records, in lists of the same length."""

    __slots__ = ("headers", "keys", "offsets", "timestamps", "values")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[tuple[Header, ...]] = []

    @classmethod
    def of(cls, records: Iterable[Any]) -> Self:
        """Return the fields of records."""
        rows = cls()
        for record in records:
            rows.offsets.append(record.offset)
            rows.timestamps.append(record.timestamp)
            rows.keys.append(record.key)
            rows.values.append(record.value)
            rows.headers.append(record.headers)
        return rows

    def add(self, others: _Rows) -> None:
        """Append other rows."""
        self.offsets += others.offsets
        self.timestamps += others.timestamps
        self.keys += others.keys
        self.values += others.values
        self.headers += others.headers

    def leave_out(self, end: int) -> None:
        """Remove the rows from an offset on; compaction keeps their order."""
        kept = [index for index, offset in enumerate(self.offsets) if offset < end]
        for name in self.__slots__:
            column = getattr(self, name)
            setattr(self, name, [column[index] for index in kept])


def _rows_of(data: bytes, position: int, count: int, origin: Origin) -> _Rows:
    """Decode records that fill ``data``; the same as `decode_records`, but faster.

    Raises:
        CorruptRecord: as `decode_records`.
    """
    # The quick loop makes no errors of its own: if it meets anything odd, the slow one
    # reads the records again, and raises the exact error.
    is_sane = 0 <= count <= (len(data) - position) // MIN_RECORD_SIZE
    if is_sane and -_SAFE_BASE < origin.base_timestamp < _SAFE_BASE:
        rows = _Rows()
        with suppress(IndexError, CorruptRecord):
            if _read(data, position, count, (origin, rows)):
                if origin.log_append_time is not None:
                    rows.timestamps = [origin.log_append_time] * len(rows.offsets)
                return rows
    return _Rows.of(decode_records(data, position, count, origin))


def _read(  # noqa: C901, PLR0912 - a loop with few calls is fastest
    data: bytes, position: int, count: int, target: tuple[Origin, _Rows]
) -> bool:
    # The loop of `kafkaio._records._pure._decode_drafts`, without an object for each
    # record. Returns False, or raises, if a record is corrupt or its timestamp far from
    # the others: then `decode_records` has to read them.
    origin, rows = target
    start_offset, base_offset = origin.start_offset, origin.base_offset
    base_timestamp, last_raw = origin.base_timestamp, origin.last_offset_delta << 1
    add_offset, add_timestamp = rows.offsets.append, rows.timestamps.append
    add_key, add_value = rows.keys.append, rows.values.append
    add_headers = rows.headers.append
    for _ in range(count):
        size = data[position]
        position += 1
        if size > 127:
            size += (data[position] << 7) - 128
            position += 1
            if size > _TWO_BYTES:
                size, position = long_varint(data, position - 2)
        end = position + (size >> 1)
        time = data[position + 1]
        position += 2
        if time > 127:
            time += (data[position] << 7) - 128
            position += 1
            if time > _TWO_BYTES:
                time, position = long_varint(data, position - 2)
        raw = data[position]
        position += 1
        if raw > 127:
            raw += (data[position] << 7) - 128
            position += 1
            if raw > _TWO_BYTES:
                raw, position = long_varint(data, position - 2)
        if (size | raw) & 1 or raw > last_raw or time >> 62:
            return False
        if base_offset + (raw >> 1) < start_offset:
            if position > end:
                return False
            # Only the lengths of records that are left out are checked.
            position = end
            continue
        key, value, headers, position = read_fields(data, position)
        if position != end:
            return False
        add_offset(base_offset + (raw >> 1))
        add_timestamp(base_timestamp + ((time >> 1) ^ -(time & 1)))
        add_key(key)
        add_value(value)
        add_headers(headers)
    return position == len(data)


def _binary_column(values: list[bytes | None]) -> BinaryColumn:
    null_count = values.count(None)
    validity = None
    if null_count:
        validity = bytearray((len(values) + 7) // 8)
        # Arrow's order: the lowest bit of a byte is the first value.
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
        # Checked value by value: the offsets come from another library's memory, and an
        # offset outside of the data must not read anything else.
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
    # The buffer may end with padding that is not a whole number.
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
        # The ends are running sums, without a leading 0.
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
        # Exact types, which the compiled twin relies on.
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


@public("kafkaio.arrow")
class Rows:
    """Rows of columns, to be sent as records.

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
                a header has no name, or a topic does not exist.
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
            UsageError: the row does not exist, or is invalid.
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
            UsageError: the row does not exist, or its topic has no name.
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
            UsageError: the rows do not exist, a column is inconsistent, or a timestamp
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
