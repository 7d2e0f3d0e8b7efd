"""Records as columns, in the memory layout of Arrow: the pure twin.

The layout is that of Arrow's ``binary`` arrays: where each value begins and ends, the
values one after the other, and a bit per value that tells it from null. Numbers are
in the byte order of the machine.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from kafkaio._records._cursor import RecordCursor
from kafkaio._records._layout import Origin
from kafkaio._records._murmur2 import key_partition
from kafkaio._records._pure import RecordWriter, decode_records
from kafkaio._records.compression import BytesLike
from kafkaio.errors import UsageError
from kafkaio.types import Header

__all__ = [
    "BinaryColumn",
    "BinaryView",
    "Columns",
    "ColumnsBuilder",
    "HeaderColumns",
    "append_columns",
    "column_partitions",
]

#: What 32-bit offsets can count.
MOST_BYTES = 2**31 - 1


class BinaryColumn(NamedTuple):
    """Values of bytes, some of them perhaps null.

    Attributes:
        validity: a bit per value, the lowest of each byte first, 0 for null; None
            where no value is null.
        offsets: 32-bit integers, one more than there are values: where each begins.
        data: the values.
        null_count: how many are null.
    """

    validity: bytearray | None
    offsets: bytearray
    data: bytearray
    null_count: int


class HeaderColumns(NamedTuple):
    """The headers of records: those of all records one after the other.

    Attributes:
        offsets: 32-bit integers, one more than there are records: where each
            record's headers begin.
        names: names in UTF-8.
        values: values.
    """

    offsets: bytearray
    names: BinaryColumn
    values: BinaryColumn


class Columns(NamedTuple):
    """Records as columns.

    Attributes:
        length: records.
        offsets: 64-bit integers.
        timestamps: 64-bit integers, milliseconds since the Unix epoch.
        keys: keys.
        values: values.
        headers: headers, None where they were not asked for.
    """

    length: int
    offsets: bytearray
    timestamps: bytearray
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None


class BinaryView(NamedTuple):
    """A column of bytes that somebody else keeps, such as an Arrow array.

    Attributes:
        validity: as in `BinaryColumn`.
        offsets: integers of ``width`` bytes.
        data: the values.
        first: index of the column's first value in these buffers.
        width: 4 or 8.
    """

    validity: BytesLike | None
    offsets: BytesLike
    data: BytesLike
    first: int = 0
    width: int = 4


class ColumnsBuilder:
    """Gathers the records of many batches as columns.

    Args:
        headers: whether to keep the records' headers.
        limit: bytes of records, as they are encoded, that may be gathered.

    Attributes:
        length: records gathered so far.
    """

    __slots__ = ("_limit", "_records", "_size", "_with_headers", "length")

    def __init__(self, *, headers: bool = False, limit: int = MOST_BYTES) -> None:
        if limit > MOST_BYTES:
            raise UsageError(f"columns hold at most {MOST_BYTES} bytes, not {limit}")
        self._with_headers = headers
        # A name that is not UTF-8 may take three times its bytes when it is mended.
        self._limit = min(limit, MOST_BYTES // 3) if headers else limit
        self._clear()

    def _clear(self) -> None:
        self._records: list[Any] = []
        self._size = 0
        self.length = 0

    def add(self, data: bytes, position: int, count: int, origin: Origin) -> bool:
        """Adds the records that `decode_records` gives for the same arguments.

        Returns:
            False where they would pass the limit: nothing was added. Call `finish`,
            then add them.

        Raises:
            CorruptRecord: as `decode_records` says. Nothing was added.
            UsageError: these records alone pass the limit.
        """
        size = len(data) - position
        if self._size + size > self._limit:
            if not self._size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        records = decode_records(data, position, count, origin)
        self._size += size
        self._records += records
        self.length += len(records)
        return True

    def add_cursor(self, cursor: RecordCursor) -> bool:
        """Adds the records that a cursor has left; the cursor stays where it is.

        Returns:
            False where they might pass the limit: nothing was added.

        Raises:
            UsageError: these records alone pass the limit.
        """
        size = cursor.bytes_left
        if self._size + size > self._limit:
            if not self._size:
                raise UsageError(f"{size} bytes of records are too much for columns")
            return False
        self._records += cursor.copy()
        self._size += size
        self.length += cursor.remaining
        return True

    def finish(self) -> Columns:
        """Returns what was gathered, and begins anew."""
        records = self._records
        headers = [record.headers for record in records] if self._with_headers else None
        columns = Columns(
            self.length,
            bytearray(array("q", [record.offset for record in records])),
            bytearray(array("q", [record.timestamp for record in records])),
            _binary_column([record.key for record in records]),
            _binary_column([record.value for record in records]),
            None if headers is None else _header_columns(headers),
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


def _values(view: BinaryView | None, start: int, stop: int) -> Iterator[bytes | None]:
    # Checks each value as it comes to it, so that those before a wrong one are given.
    if view is None:
        for _ in range(start, stop):
            yield None
        return
    validity, offsets, data, first = _checked(view, stop)
    for index in range(first + start, first + stop):
        if validity is not None and not validity[index >> 3] >> (index & 7) & 1:
            yield None
            continue
        at, end = offsets[index], offsets[index + 1]
        if not 0 <= at <= end <= len(data):
            raise UsageError(f"value {index - first} of a column lies outside its data")
        yield bytes(data[at:end])


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


def append_columns(
    writer: RecordWriter,
    timestamps: int | BytesLike,
    keys: BinaryView | None,
    values: BinaryView | None,
    start: int,
    stop: int,
) -> int:
    """Appends rows of columns as records without headers until the batch is full.

    Args:
        writer: the batch.
        timestamps: 64-bit integers, milliseconds since the Unix epoch, or one number
            for all rows.
        keys: the keys; None where there are none.
        values: the values; None where there are none.
        start: the first row to append.
        stop: the row to stop before.

    Returns:
        How many rows were appended, from ``start`` on.

    Raises:
        UsageError: a column has no such row, or contradicts itself, or a timestamp
            is impossible. Rows before it were appended.
    """
    if not 0 <= start <= stop:
        raise UsageError(f"there are no rows from {start} to {stop}")
    times: memoryview | None = None
    time = 0
    if isinstance(timestamps, int):
        time = timestamps
    else:
        times = memoryview(timestamps).cast("B")
        if len(times) // 8 < stop:
            raise UsageError(f"a column has fewer than {stop} values")
        times = times[: len(times) // 8 * 8].cast("q")
    for view in (keys, values):
        if view is not None:
            _checked(view, stop)
    pairs = zip(_values(keys, start, stop), _values(values, start, stop), strict=True)
    for row, (key, value) in enumerate(pairs, start):
        if times is not None:
            time = times[row]
        if writer.try_append(time, key, value) < 0:
            return row - start
    return stop - start


def column_partitions(keys: BinaryView, start: int, stop: int, count: int) -> bytearray:
    """The partition of each key among ``count``, as 32-bit integers; -1 without a key.

    Raises:
        UsageError: the column has no such row, or contradicts itself.
    """
    if not 0 <= start <= stop or count < 1:
        raise UsageError(f"there are no rows from {start} to {stop} for {count}")
    return bytearray(
        array(
            "i",
            [
                -1 if key is None else key_partition(key, count)
                for key in _values(keys, start, stop)
            ],
        )
    )
