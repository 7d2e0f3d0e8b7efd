"""Kafka batches as Arrow tables, and Arrow tables as Kafka records.

This module needs pyarrow: ``pip install 'kafkaio[arrow]'``. Records are copied from
batches to tables and back without a Python object for each record.

A table of records has these columns, which `schema` returns:

=============  ==============================================  ======================
name           type                                            null if
=============  ==============================================  ======================
``topic``      dictionary of int32 and string                  never
``partition``  int32                                           never
``offset``     int64                                           never
``timestamp``  timestamp in milliseconds, UTC                  the record has none
``key``        binary                                          the record has none
``value``      binary                                          the record has none
``headers``    list of struct ``name``: string, ``value``:     never; it may be empty
               binary; only if asked for
=============  ==============================================  ======================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from kafkaio._arguments import type_name
from kafkaio._records.batch import (
    MOST_BYTES,
    Batch,
    BinaryColumn,
    BinaryView,
    Columns,
    ColumnsBuilder,
    Destinations,
    HeaderColumns,
    HeaderView,
    RecordCursor,
    Rows,
    column_partitions,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import NewRecord, Record, TopicPartition

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _error:
    raise ImportError(
        "kafkaio.arrow needs pyarrow; install it with: pip install 'kafkaio[arrow]'"
    ) from _error

__all__ = [
    "Rows",
    "TableBuilder",
    "batches_to_table",
    "records_from_table",
    "records_to_table",
    "rows_from_table",
    "schema",
    "split_by_key",
]

_TIME = pa.timestamp("ms", tz="UTC")
_TOPIC = pa.dictionary(pa.int32(), pa.string())
_HEADER = pa.struct(
    [pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())]
)
_COLUMNS = [
    pa.field("topic", _TOPIC, nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("timestamp", _TIME),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
]
_SCHEMA = pa.schema(_COLUMNS)
_SCHEMA_WITH_HEADERS = pa.schema(
    [*_COLUMNS, pa.field("headers", pa.list_(_HEADER), nullable=False)]
)
_NO_TIME = -1
_MAX_INT32 = 2**31 - 1
#: The types of columns of topics.
_TEXT = frozenset({"string", "large_string", "string_view"})
#: The types that columns are read as. By name, because older pyarrow has no views.
_LAYOUTS = {
    **dict.fromkeys(("binary", "string", "fixed_size_binary"), pa.binary()),
    **dict.fromkeys(("large_binary", "large_string"), pa.large_binary()),
    **dict.fromkeys(("binary_view", "string_view"), pa.large_binary()),
    "null": pa.null(),
}
#: The most records, and bytes of them, that memory is allocated ahead for.
_AHEAD, _BYTES_AHEAD = 2**20, 32 * 2**20


def schema(*, headers: bool = False) -> pa.Schema:
    """Return the schema of a table of records.

    Args:
        headers: whether there is a column of headers.
    """
    return _SCHEMA_WITH_HEADERS if headers else _SCHEMA


class TableBuilder:
    """Collects the records of many batches, of any partitions, in one table.

    The rows are in the order in which the batches were added.

    Args:
        headers: whether the table has a column of headers.
        limit: the most bytes of records, as they are encoded, in one chunk of the
            table.

    Attributes:
        length: number of records so far.
    """

    def __init__(self, *, headers: bool = False, limit: int = MOST_BYTES) -> None:
        self._headers = headers
        self._columns = ColumnsBuilder(headers=headers, limit=limit)
        # The partitions of the records of this chunk, as runs: partition and length.
        self._runs: list[tuple[TopicPartition, int]] = []
        self._chunks: list[pa.RecordBatch] = []
        self.length: int = 0

    def add(self, tp: TopicPartition, batch: Batch, start_offset: int = 0) -> None:
        """Add a batch's records from ``start_offset`` on.

        Raises:
            CorruptRecord: the records cannot be decoded; none was added.
            UsageError: the batch alone is larger than the limit.
        """
        self._add(tp, partial(batch.add_to, self._columns, *tp, start_offset))

    def add_cursor(
        self, tp: TopicPartition, cursor: RecordCursor, count: int = 0
    ) -> None:
        """Add the records that a cursor has left, without moving the cursor.

        The first call allocates memory for ``count`` such records in total.

        Raises:
            UsageError: the records are larger than the limit.
        """
        if 0 < cursor.remaining < count and not self._columns.length:
            size = cursor.bytes_left * count // cursor.remaining
            self._columns.reserve(min(count, _AHEAD), min(size, _BYTES_AHEAD))
        self._add(tp, partial(self._columns.add_cursor, cursor))

    def _add(self, tp: TopicPartition, add: Callable[[], bool]) -> None:
        before = self._columns.length
        if not add():
            self._close_chunk()
            before = 0
            add()
        added = self._columns.length - before
        self.length += added
        if self._runs and self._runs[-1][0] == tp:
            added += self._runs.pop()[1]
        self._runs.append((tp, added))

    def finish(self) -> pa.Table:
        """Return the table, and start again with an empty one."""
        if self._columns.length:
            self._close_chunk()
        chunks, self._chunks, self._runs = self._chunks, [], []
        self.length = 0
        return pa.Table.from_batches(chunks, schema(headers=self._headers))

    def _close_chunk(self) -> None:
        arrays = [*_places(self._runs), *_arrays(self._columns.finish())]
        self._runs = []
        self._chunks.append(
            pa.RecordBatch.from_arrays(arrays, schema=schema(headers=self._headers))
        )


def batches_to_table(
    parts: Iterable[tuple[TopicPartition, Batch, int]], *, headers: bool = False
) -> pa.Table:
    """Return the records of many batches as one table.

    Args:
        parts: each batch with its partition and the offset of its first record to
            include.
        headers: whether the table has a column of headers.

    Raises:
        CorruptRecord: records cannot be decompressed or decoded.
    """
    builder = TableBuilder(headers=headers)
    for tp, batch, start_offset in parts:
        builder.add(tp, batch, start_offset)
    return builder.finish()


def _places(runs: Sequence[tuple[TopicPartition, int]]) -> tuple[pa.Array, pa.Array]:
    topics: dict[str, int] = {}
    indices: list[bytes] = []
    partitions: list[bytes] = []
    for (topic, partition), count in runs:
        index = topics.setdefault(topic, len(topics))
        indices.append(index.to_bytes(4, sys.byteorder) * count)
        partitions.append(partition.to_bytes(4, sys.byteorder) * count)
    numbers = _fixed(pa.int32(), b"".join(indices), 4)
    names = pa.array(topics, pa.string())
    dictionary = pa.DictionaryArray.from_arrays(numbers, names)
    return dictionary, _fixed(pa.int32(), b"".join(partitions), 4)


def _arrays(columns: Columns) -> list[pa.Array]:
    arrays = [
        _fixed(pa.int64(), columns.offsets, 8),
        _times(_fixed(pa.int64(), columns.timestamps, 8), columns.timeless),
        _binary(columns.keys, columns.length),
        _binary(columns.values, columns.length),
    ]
    if columns.headers is not None:
        arrays.append(_headers(columns.headers, columns.length))
    return arrays


def _fixed(kind: pa.DataType, data: bytes | bytearray, width: int) -> pa.Array:
    return pa.Array.from_buffers(kind, len(data) // width, [None, pa.py_buffer(data)])


def _binary(
    column: BinaryColumn, length: int, kind: pa.DataType | None = None
) -> pa.Array:
    validity, offsets, data, null_count = column
    buffers = [
        None if validity is None else pa.py_buffer(validity),
        pa.py_buffer(offsets),
        pa.py_buffer(data),
    ]
    return pa.Array.from_buffers(kind or pa.binary(), length, buffers, null_count)


def _headers(columns: HeaderColumns, length: int) -> pa.Array:
    count = len(columns.names.offsets) // 4 - 1
    pairs = pa.StructArray.from_arrays(
        [_binary(columns.names, count, pa.string()), _binary(columns.values, count)],
        fields=list(_HEADER),
    )
    return pa.Array.from_buffers(
        pa.list_(_HEADER),
        length,
        [None, pa.py_buffer(columns.offsets)],
        0,
        children=[pairs],
    )


def _times(numbers: pa.Array, timeless: int) -> pa.Array:
    if timeless:
        absent = pc.equal(numbers, _NO_TIME)
        numbers = pc.if_else(absent, pa.scalar(None, pa.int64()), numbers)
    return numbers.view(_TIME)


def records_to_table(records: Sequence[Record], *, headers: bool = False) -> pa.Table:
    """Return records as a table; keys and values can be deserialized objects.

    The columns are those of `schema`. If keys or values are not bytes, their column has
    the type that pyarrow infers from the objects.
    """
    columns = {
        "topic": pa.array([record.topic for record in records], _TOPIC),
        "partition": pa.array([record.partition for record in records], pa.int32()),
        "offset": pa.array([record.offset for record in records], pa.int64()),
        "timestamp": _times(
            pa.array([record.timestamp for record in records], pa.int64()),
            sum(record.timestamp == _NO_TIME for record in records),
        ),
        "key": _objects([record.key for record in records]),
        "value": _objects([record.value for record in records]),
    }
    if headers:
        columns["headers"] = pa.array(
            [
                [{"name": name, "value": value} for name, value in record.headers]
                for record in records
            ],
            pa.list_(_HEADER),
        )
    fields = [
        field.with_type(columns[field.name].type) for field in schema(headers=headers)
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _objects(values: Sequence[object]) -> pa.Array:
    are_bytes = all(value is None or isinstance(value, bytes) for value in values)
    return pa.array(values, pa.binary() if are_bytes else None)


def rows_from_table(  # noqa: PLR0913 - the columns, by name
    table: pa.Table | pa.RecordBatch,
    *,
    now: int,
    key: str | None = None,
    value: str | None = "value",
    timestamp: str | None = None,
    headers: str | None = None,
    topic: str | None = None,
    partition: str | None = None,
) -> Iterator[Rows]:
    """Yield the rows of a table, one chunk of memory at a time.

    ``rows.append_to(builder, start)`` appends as many of them to a batch as fit,
    wherever they are to go; ``rows.destination(row)`` says where.

    Args:
        table: the table.
        now: milliseconds since the Unix epoch: the timestamp of rows without one.
        key: name of the column of keys; None for records without keys.
        value: name of the column of values; None for tombstones.
        timestamp: name of the column of timestamps; None for no such column. Units
            finer than milliseconds are truncated.
        headers: name of the column of headers: lists of structs of a name and a value,
            or maps; a null means no headers. None for no such column.
        topic: name of the column of topics: text, plain or as a dictionary, without
            nulls. None for no such column.
        partition: name of the column of partitions: integers; a null means no
            partition. None for no such column.

    Raises:
        ArgumentTypeError: the table is not a pyarrow Table or RecordBatch.
        ArgumentValueError: the table has no such column; a key or value column is
            neither binary nor text; a timestamp column has neither timestamps nor
            integers; a column of headers has another type, or a name that is null or
            not UTF-8; a column of topics or partitions has another type, or a value
            that is none.
    """
    start = 0
    for chunk in _chunks(table, key, value, timestamp, headers, topic, partition):
        times: int | memoryview = now
        if timestamp is not None:
            times = _memory(_milliseconds(chunk, timestamp).fill_null(now))
        yield Rows(
            len(chunk),
            times,
            None if key is None else _view(_bytes(chunk, key)),
            None if value is None else _view(_bytes(chunk, value)),
            None if headers is None else _header_view(chunk, headers),
            _destinations(chunk, topic, partition, start),
        )
        start += len(chunk)


def records_from_table(
    table: pa.Table | pa.RecordBatch,
    *,
    key: str | None = None,
    value: str | None = "value",
    timestamp: str | None = None,
) -> Iterator[NewRecord]:
    """Yield the rows of a table as records for ``Producer.send_many``.

    `rows_from_table` makes no object per record, and is faster.

    Args:
        table: the table.
        key: name of the column of keys; None for records without keys.
        value: name of the column of values; None for tombstones.
        timestamp: name of the column of timestamps, in any unit; units finer than
            milliseconds are truncated. With None, or null in a row, the producer sets
            the timestamp.

    Raises:
        ArgumentTypeError: the table is not a pyarrow Table or RecordBatch.
        ArgumentValueError: the table has no such column, or a column has a type that
            cannot be sent.
    """
    for chunk in _chunks(table, key, value, timestamp):
        nothing = [None] * len(chunk)
        keys = nothing if key is None else _bytes(chunk, key).to_pylist()
        values = nothing if value is None else _bytes(chunk, value).to_pylist()
        times = nothing
        if timestamp is not None:
            times = _milliseconds(chunk, timestamp).to_pylist()
        for row in zip(values, keys, times, strict=True):
            yield NewRecord(row[0], row[1], timestamp=row[2])


def split_by_key(
    table: pa.Table, key: str, partition_count: int
) -> list[tuple[int, pa.Table]]:
    """Split a table by the partitions of its keys, computed as in Java.

    The rows of a partition keep their order.

    Returns:
        The partitions that have rows, ascending, each with its rows. Rows without a
        key come first, with partition -1.

    Raises:
        ArgumentTypeError: the table is not a pyarrow Table.
        ArgumentValueError: the table has no such column, or the column is neither
            binary nor text.
    """
    found = pa.chunked_array(
        [
            _partitions(_bytes(chunk, key), partition_count)
            for chunk in _chunks(table, key)
        ],
        pa.int32(),
    )
    order = pc.sort_indices(found)  # a stable sort
    sorted_table = table.take(order)
    counts = {
        pair["values"]: pair["counts"] for pair in pc.value_counts(found).to_pylist()
    }
    parts, start = [], 0
    for partition in sorted(counts):
        parts.append((partition, sorted_table.slice(start, counts[partition])))
        start += counts[partition]
    return parts


def _chunks(
    table: pa.Table | pa.RecordBatch, *names: str | None
) -> Iterator[pa.RecordBatch]:
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise ArgumentTypeError(
            f"table must be a Table or RecordBatch of pyarrow, not {type(table)}"
        )
    for name in names:
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(
                f"the name of a column must be str or None, not {type_name(name)}"
            )
        if name is not None and table.schema.get_field_index(name) < 0:
            raise ArgumentValueError(
                f"the table has no column {name!r}, or several of this name"
            )
    chunks = table.to_batches() if isinstance(table, pa.Table) else [table]
    return (chunk for chunk in chunks if chunk.num_rows)


def _partitions(column: pa.Array, count: int) -> pa.Array:
    view = _view(column)
    if view is None:
        return pa.array([-1] * len(column), pa.int32())
    return _fixed(pa.int32(), column_partitions(view, 0, len(column), count), 4)


def _milliseconds(chunk: pa.RecordBatch, name: str) -> pa.Array:
    column = chunk.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False)
    elif not pa.types.is_integer(column.type):
        raise ArgumentValueError(
            f"column {name!r} is {column.type}; timestamps must be of Arrow's type for"
            " them, or integers in milliseconds"
        )
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise ArgumentValueError(f"column {name!r}: {error}") from error


def _header_view(chunk: pa.RecordBatch, name: str) -> HeaderView | None:
    column = chunk.column(name)
    kind = column.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        column = column.cast(pa.list_(entries))
    entry = getattr(column.type, "value_type", None)
    if entry is None or not pa.types.is_struct(entry) or entry.num_fields != 2:
        raise ArgumentValueError(
            f"column {name!r} is {kind}; headers must be lists of structs of a name and"
            " a value, or maps"
        )
    # Both skip null lists, even if there are values under them.
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    names, values = column.flatten().flatten()
    if names.null_count:
        raise ArgumentValueError(f"column {name!r} has a header without a name")
    try:
        names = _as_bytes(names, name).cast(pa.large_string())
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ArgumentValueError(
            f"column {name!r} has a header whose name is not UTF-8: {error}"
        ) from error
    view = _view(names.cast(pa.large_binary()))
    assert view is not None  # it is None for the null type only
    return HeaderView(
        _memory(pc.cumulative_sum(lengths)), view, _view(_as_bytes(values, name))
    )


def _destinations(
    chunk: pa.RecordBatch, topic: str | None, partition: str | None, start: int
) -> Destinations | None:
    if topic is None and partition is None:
        return None
    names, numbers = ((), None) if topic is None else _topics(chunk, topic, start)
    partitions = None if partition is None else _partition(chunk, partition, start)
    return Destinations(names, numbers, partitions)


def _topics(
    chunk: pa.RecordBatch, name: str, start: int
) -> tuple[tuple[str, ...], memoryview]:
    column = chunk.column(name)
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if str(kind) not in _TEXT and not pa.types.is_null(kind):
        raise ArgumentValueError(
            f"column {name!r} is {column.type}; topics must be text, plain or as a "
            "dictionary"
        )
    if pa.types.is_dictionary(column.type):
        words = column.dictionary.cast(pa.string())
        if words.null_count or len(words) > len(column):
            column = words.take(column.indices)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    _refuse(pc.is_null(column), name, start, "a topic cannot be null")
    names = column.dictionary.cast(pa.string()).to_pylist()
    numbers = column.indices.cast(pa.int32())
    if "" in names:
        is_empty = pc.equal(numbers, names.index(""))
        _refuse(is_empty, name, start, "a topic cannot be empty")
    return tuple(names), _memory(numbers, 4)


def _partition(chunk: pa.RecordBatch, name: str, start: int) -> memoryview:
    column = chunk.column(name)
    if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
        raise ArgumentValueError(
            f"column {name!r} is {column.type}; partitions must be integers"
        )
    # A number that 64 bits cannot hold becomes a negative one.
    numbers = column.cast(pa.int64(), safe=False)
    limits = pc.min_max(numbers)
    if (limits["min"].as_py() or 0) < 0 or (limits["max"].as_py() or 0) > _MAX_INT32:
        is_wrong = pc.or_(pc.less(numbers, 0), pc.greater(numbers, _MAX_INT32))
        _refuse(is_wrong, name, start, "there is no such partition", column)
    return _memory(numbers.cast(pa.int32()).fill_null(-1), 4)


def _refuse(
    is_wrong: pa.Array, name: str, start: int, why: str, column: pa.Array | None = None
) -> None:
    row = pc.index(is_wrong, value=True).as_py()
    if row >= 0:
        what = "" if column is None else f": {column[row]}"
        raise ArgumentValueError(f"column {name!r}, row {start + row}: {why}{what}")


def _memory(numbers: pa.Array, width: int = 8) -> memoryview:
    start = numbers.offset * width
    return memoryview(numbers.buffers()[1])[start : start + len(numbers) * width]


def _bytes(chunk: pa.RecordBatch, name: str) -> pa.Array:
    return _as_bytes(chunk.column(name), name)


def _as_bytes(column: pa.Array, name: str) -> pa.Array:
    # As binary or large_binary; as null if the column has no values at all.
    if pa.types.is_dictionary(column.type):
        # Arrow's own decoding supports neither views nor more than 2 GiB of values.
        words = _as_bytes(column.dictionary, name).cast(pa.large_binary())
        return words.take(column.indices)
    layout = _LAYOUTS.get(str(column.type).partition("[")[0])
    if layout is None:
        raise ArgumentValueError(
            f"column {name!r} is {column.type}, not binary or text"
        )
    return column.cast(layout)


def _view(column: pa.Array) -> BinaryView | None:
    if pa.types.is_null(column.type):
        return None
    validity, offsets, data = column.buffers()
    return BinaryView(
        None if validity is None else memoryview(validity),
        memoryview(offsets),
        b"" if data is None else memoryview(data),
        column.offset,
        8 if pa.types.is_large_binary(column.type) else 4,
    )
