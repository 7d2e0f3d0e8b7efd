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

`read_table` reads whole topics, or between two offsets or times, without an event loop.
`read_batches` does so batch by batch, for libraries that take Arrow's readers.
`read_table_async` and `read_batches_async` do the same in coroutines. `read_ranges`
reads ranges of offsets on a client. None of them needs a consumer or a group.
"""

from __future__ import annotations

import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing
from datetime import datetime
from functools import partial
from itertools import accumulate
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar, Union, Unpack
from uuid import UUID

from kafkaio._arguments import count_of, level_of, partition_of, type_name
from kafkaio._named_tuple import NamedTuple
from kafkaio._records.batch import (
    MOST_BYTES,
    BinaryColumn,
    BinaryView,
    Columns,
    ColumnsBuilder,
    DecodedColumns,
    Destinations,
    HeaderColumns,
    HeaderView,
    RecordCursor,
    Rows,
    column_partitions,
)
from kafkaio._records.legacy import LegacyBatch
from kafkaio._records.view import RecordBatch
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CorruptRecord,
    OffsetOutOfRange,
    RecordTooLarge,
    UsageError,
)
from kafkaio.types import NewRecord, OffsetRange, Record, TopicPartition

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _error:
    raise ImportError(
        "kafkaio.arrow needs pyarrow; install it with: pip install 'kafkaio[arrow]'"
    ) from _error

if TYPE_CHECKING:
    from kafkaio._client import Client
    from kafkaio._client.log_ranges import Edge, Selection
    from kafkaio._config import ClientConfig, ClientOptions
    from kafkaio._fetching.ranges import RangeFetcher, RangePart
    from kafkaio._machines.ranges import RangeState

__all__ = [
    "Bound",
    "ColumnChoice",
    "Place",
    "RangeReader",
    "Rows",
    "TopicReader",
    "batches_to_table",
    "read_batches",
    "read_batches_async",
    "read_ranges",
    "read_table",
    "read_table_async",
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
_HEADERS = pa.list_(_HEADER)
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
    [*_COLUMNS, pa.field("headers", _HEADERS, nullable=False)]
)
_NO_TIME = -1
_MAX_INT32 = 2**31 - 1
#: The types of columns of topics.
_TEXT = frozenset({"string", "large_string", "string_view"})
#: The types that columns are read as. Views are converted: their buffers have another
#: layout, with several buffers of data. By name, because older pyarrow has no views.
_LAYOUTS = {
    **dict.fromkeys(("binary", "string", "fixed_size_binary"), pa.binary()),
    **dict.fromkeys(("large_binary", "large_string"), pa.large_binary()),
    **dict.fromkeys(("binary_view", "string_view"), pa.large_binary()),
    "null": pa.null(),
}
#: Memory is allocated ahead for that many records and bytes at most: a count that a
#: broker sends must not decide how much.
_AHEAD, _BYTES_AHEAD = 2**20, 32 * 2**20
#: Bytes of records, decompressed, after which a batch of a range is handed out.
_ENOUGH = 32 * 2**20
#: Bytes of records up to which a batch goes on with the next range, if that is here.
_SMALL = 2**20

ColumnT = TypeVar("ColumnT")


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
        self._columns = ColumnsBuilder(DecodedColumns(headers=headers), limit=limit)
        # The partitions of the records of this chunk, as runs: partition and length.
        self._runs: list[tuple[TopicPartition, int]] = []
        self._chunks: list[pa.RecordBatch] = []
        self.length: int = 0

    def add(
        self,
        tp: TopicPartition,
        batch: RecordBatch | LegacyBatch,
        start_offset: int = 0,
    ) -> None:
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
        # An estimate by the records that are left. Only for the first cursor of a
        # chunk: later ones find the memory allocated.
        if 0 < cursor.remaining < count and not self._columns.length:
            size = cursor.bytes_left * count // cursor.remaining
            self._columns.reserve(min(count, _AHEAD), min(size, _BYTES_AHEAD))
        self._add(tp, partial(self._columns.add_cursor, cursor))

    def _add(self, tp: TopicPartition, add: Callable[[], bool]) -> None:
        before = self._columns.length
        if not add():
            # The chunk is full, and nothing of the batch was added. An empty chunk
            # takes it, or raises.
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
    parts: Iterable[tuple[TopicPartition, RecordBatch | LegacyBatch, int]],
    *,
    headers: bool = False,
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
    # Bytes times a count: no object for each record.
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
        _fixed(pa.int64(), _made(columns.offsets), 8),
        _times(_fixed(pa.int64(), _made(columns.timestamps), 8), columns.timeless),
        _binary(_made(columns.keys), columns.length),
        _binary(_made(columns.values), columns.length),
    ]
    if columns.headers is not None:
        arrays.append(_headers(columns.headers, columns.length))
    return arrays


def _made(column: ColumnT | None) -> ColumnT:
    assert column is not None  # it was asked for
    return column


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


def _headers(
    columns: HeaderColumns, length: int, kind: pa.DataType = _HEADERS
) -> pa.Array:
    count = len(columns.names.offsets) // 4 - 1
    pairs = pa.StructArray.from_arrays(
        [_binary(columns.names, count, pa.string()), _binary(columns.values, count)],
        fields=list(kind.value_type),
    )
    return pa.Array.from_buffers(
        kind,
        length,
        [None, pa.py_buffer(columns.offsets)],
        0,
        children=[pairs],
    )


def _times(numbers: pa.Array, timeless: int, kind: pa.DataType = _TIME) -> pa.Array:
    # The usual case copies nothing: the numbers are the timestamps.
    if timeless:
        absent = pc.equal(numbers, _NO_TIME)
        numbers = pc.if_else(absent, pa.scalar(None, pa.int64()), numbers)
    return numbers.view(kind)


# ---- ranges of offsets ---------------------------------------------------------------


def read_ranges(
    client: Client,
    ranges: Iterable[OffsetRange],
    *,
    schema: pa.Schema | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    fetch_bytes: int = 4 * 2**20,
    topic_ids: Mapping[str, UUID] | None = None,
) -> RangeReader:
    """Read ranges of offsets of any partitions as Arrow, without a consumer or a group.

    One request fetches many ranges of a leader, and all leaders are asked at the same
    time. The next fetches were sent when a batch is handed out: the brokers work while
    the caller does, even if the caller stops the event loop in between. A batch has
    about the records of one answer, of one range or of several; large answers come
    as several batches.

    The records of a range always come in the order of their offsets. The ranges come in
    the order given while all leaders answer. If a leader does not answer, or has
    nothing of a range yet, and records of other ranges have waited for half a second,
    those go first, and the late ones follow when they arrive. So a leader that is gone
    does not hold up the others; sort the table if the order of the ranges matters.

    A range is finished when its end is reached. Compacted topics, aborted transactions
    and transaction markers leave offsets without records, so a range can have fewer
    records than offsets, or none. If the log does not reach the end yet, the reader
    waits.

    Leaders that move, connections that break and brokers that do not answer are
    retried, for ``default_api_timeout_ms`` without progress of any range. Checksums are
    checked.

    Several readers on one client work side by side. The client must stay open, and
    belongs to the event loop that runs the reader.

    ``schema`` chooses the columns by name, in any order, and their forms by type. What
    is not asked for is not decoded. Without a schema the columns are those of
    `kafkaio.arrow.schema`.

    ==================  =============================================================
    column              types
    ==================  =============================================================
    ``key``, ``value``  binary, or string, whose bytes are checked to be UTF-8
    ``topic``           string, or a dictionary of strings
    ``partition``       int32
    ``offset``          int64
    ``timestamp``       timestamp with a time zone, in milliseconds or microseconds
    ``timestamp_type``  int32: 0 for the producer's timestamps, 1 for the broker's, -1
                        for none
    ``headers``         list of struct of ``name`` or ``key``: string, and ``value``:
                        binary; null without headers if the column can be null
    ``leader_epoch``    int32; -1 if it is unknown
    ==================  =============================================================

    Args:
        client: a client that was started.
        ranges: partitions with the offset of the first record, and the offset after the
            last one.
        schema: which columns; all of them but headers by default.
        isolation_level: ``"read_committed"`` leaves out records of aborted
            transactions, and waits for the end of open ones.
        fetch_bytes: the most bytes of one answer, as they are sent; one batch that is
            larger comes whole. Of one leader two answers at most are in memory, three
            in rare cases, and of all leaders together twelve.
        topic_ids: the ids (KIP-516) that topics had when the ranges were chosen. If one
            of these topics was deleted and made again since then, a step raises
            UnknownTopicOrPartition, instead of reading other records at the same
            offsets. Of topics without an id here, the reader notices only that they are
            made again after it has begun to read them. Fetches
            to brokers before 3.1 carry no ids: there it is noticed when metadata are
            fetched.

    Returns:
        An asynchronous iterator. A step that raises or is cancelled has taken nothing:
        the next step goes on at the same record. ``aclose()`` ends it early. A step
        raises:

        - `OffsetOutOfRange`: the log does not have the range (any more); it names the
          range, and the offsets of the log;
        - `LogTruncated`: an unclean election lost records that were read (KIP-320);
        - `UnknownTopicOrPartition`: the topic or partition does not exist, or the topic
          was deleted and made again;
        - `RequestTimeout`: nothing came in time; the cause is the last failure;
        - `CorruptRecord`: a checksum is wrong, or records cannot be decoded; the
          records before it were handed out. Read the range from ``next_offset`` on to
          leave the batch out;
        - `ArgumentValueError`: a key or value is not UTF-8, or a timestamp too large,
          for the form that the schema has;
        - `RecordTooLarge`: a batch is larger than ``max_response_size``, or it
          decompresses to more than ``max_decompressed_batch_size``;
        - `AuthorizationError`: the client may not read a topic.

    Raises:
        ArgumentTypeError: an argument has the wrong type.
        ArgumentValueError: a range ends before it begins, the schema has a column or
            type that is not in the table, or ``fetch_bytes`` is impossible.
    """
    from kafkaio._client.client import Client, cluster_of
    from kafkaio._fetching.ranges import RangeFetcher

    if not isinstance(client, Client):
        raise ArgumentTypeError(f"client must be a Client, not {type_name(client)}")
    chosen = _RangeForm(_SCHEMA if schema is None else schema)
    reader = RangeReader(client, chosen)
    cluster = cluster_of(client)
    _check_fetch_bytes(fetch_bytes, client.config)
    reader._begin(
        RangeFetcher(
            cluster,
            client.config,
            _ranges_of(ranges),
            isolation_level=level_of(isolation_level),
            fetch_bytes=fetch_bytes,
            topic_ids=_topic_ids_of(topic_ids),
            borrower=reader,
        )
    )
    return reader


def _check_fetch_bytes(fetch_bytes: int, config: ClientConfig) -> None:
    limit = config.max_response_size
    if count_of("fetch_bytes", fetch_bytes, 1) >= limit:
        raise ArgumentValueError(
            f"fetch_bytes={fetch_bytes} must be less than max_response_size={limit}"
        )


def _topic_ids_of(ids: object) -> dict[str, UUID]:
    if ids is None:
        return {}
    if not isinstance(ids, Mapping):
        raise ArgumentTypeError(
            f"topic_ids must be a mapping of names to UUIDs, not {type_name(ids)}"
        )
    for name, topic_id in ids.items():
        if not isinstance(name, str) or not isinstance(topic_id, UUID):
            raise ArgumentTypeError(
                f"topic_ids must map names to UUIDs; it has {name!r}: {topic_id!r}"
            )
    return dict(ids)


def _ranges_of(ranges: object) -> list[OffsetRange]:
    if not isinstance(ranges, Iterable):
        raise ArgumentTypeError(
            f"ranges must be a collection of OffsetRange, not {type_name(ranges)}"
        )
    found = []
    for each in ranges:
        if not isinstance(each, tuple) or len(each) != 3:
            raise ArgumentTypeError(f"{each!r} is not an OffsetRange")
        partition, start, end = each
        if type(start) is not int or type(end) is not int:
            raise ArgumentTypeError(f"{each!r} is not an OffsetRange")
        if not 0 <= start <= end:
            raise ArgumentValueError(f"there is no range from {start} to {end}")
        found.append(OffsetRange(partition_of(partition), start, end))
    return found


class _ChunkPart(NamedTuple):
    """The origin of some records of a chunk.

    Attributes:
        partition: their partition.
        start: they are not before this offset.
        rows: how many there are.
    """

    partition: TopicPartition
    start: int
    rows: int

    @property
    def name(self) -> str:
        """The place of the records, for messages."""
        topic, partition = self.partition
        return f"{topic}-{partition} from offset {self.start} on"


class _Chunk(NamedTuple):
    """Records of ranges that become a batch.

    Attributes:
        columns: the decoded columns.
        places: the origins of the records, in their order.
        runs: number of records, timestamp type and leader epoch, batch by batch.
    """

    columns: Columns
    places: list[_ChunkPart]
    runs: list[tuple[int, int, int]]

    def name(self, array: pa.Array, accepts: Callable[[pa.Array], object]) -> str:
        """Return the origin of records that a column cannot hold, for messages.

        Args:
            array: one value for each record.
            accepts: raises for values that the column cannot have.
        """
        # Only after a failure: checked again, part by part, to name the partition.
        start = 0
        for place in self.places:
            try:
                accepts(array.slice(start, place.rows))
            except pa.ArrowInvalid:
                return place.name
            start += place.rows
        return self.places[0].name


#: Makes one column.
_Form: TypeAlias = Callable[[_Chunk], pa.Array]


class _RangeForm:
    """A schema, and how to make its columns.

    Args:
        schema: the schema of the batches.

    Attributes:
        wanted: the columns to decode.

    Raises:
        ArgumentTypeError: it is not a schema.
        ArgumentValueError: it has an unknown column, or a type that a column lacks.
    """

    def __init__(self, schema: pa.Schema) -> None:
        if not isinstance(schema, pa.Schema):
            raise ArgumentTypeError(
                f"schema must be a Schema of pyarrow, not {type_name(schema)}"
            )
        names = schema.names
        if not names or len(set(names)) < len(names):
            raise ArgumentValueError(
                f"a schema must have columns, each once; this one has {names}"
            )
        self._schema = schema
        self._forms = [_form_of(field) for field in schema]
        self.wanted: DecodedColumns = DecodedColumns(
            offsets="offset" in names,
            timestamps="timestamp" in names,
            keys="key" in names,
            values="value" in names,
            headers="headers" in names,
        )

    def batch(self, chunk: _Chunk) -> pa.RecordBatch:
        """Make a batch."""
        arrays = [form(chunk) for form in self._forms]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _form_of(field: pa.Field) -> _Form:
    name, kind = field.name, field.type
    forms = _FORMS.get(name)
    if forms is None:
        raise ArgumentValueError(
            f"there is no column {name!r}; the columns are {', '.join(_FORMS)}"
        )
    if name in _CAN_BE_NULL and not field.nullable:
        raise ArgumentValueError(f"column {name!r} can be null; make it nullable")
    form = forms(field)
    if form is None:
        raise ArgumentValueError(f"column {name!r} cannot be {kind}")
    return form


def _bytes_form(field: pa.Field) -> _Form | None:
    name, kind = field.name, field.type
    if kind not in {pa.binary(), pa.string()}:
        return None
    is_text = kind == pa.string()

    def make(chunk: _Chunk) -> pa.Array:
        columns = chunk.columns
        column = _made(columns.keys if name == "key" else columns.values)
        made = _binary(column, columns.length, kind)
        if is_text:
            # Arrow trusts the bytes of a string column: a reader of the table could
            # crash on bytes that are not UTF-8.
            try:
                _validate(made)
            except pa.ArrowInvalid as error:
                raise ArgumentValueError(
                    f"a {name} of {chunk.name(made, _validate)} is not UTF-8; read the "
                    f"column as binary: {error}"
                ) from error
        return made

    return make


def _validate(array: pa.Array) -> None:
    array.validate(full=True)


def _topic_form(field: pa.Field) -> _Form | None:
    kind = field.type
    if kind == pa.string():
        return _topic_names
    if not pa.types.is_dictionary(kind) or kind.value_type != pa.string():
        return None

    def make(chunk: _Chunk) -> pa.Array:
        # A dictionary of its own for each batch, with the topics of that batch.
        numbers: dict[str, int] = {}
        runs = [
            (numbers.setdefault(place.partition.topic, len(numbers)), place.rows)
            for place in chunk.places
        ]
        indices = _repeated(runs, kind.index_type)
        names = pa.array(numbers, pa.string())
        return pa.DictionaryArray.from_arrays(indices, names, ordered=kind.ordered)

    return make


def _topic_names(chunk: _Chunk) -> pa.Array:
    runs = [(place.partition.topic, place.rows) for place in chunk.places]
    return _repeated(runs, pa.string())


def _repeated(runs: Sequence[tuple[object, int]], kind: pa.DataType) -> pa.Array:
    """Return an array of values, each a number of times."""
    if len({value for value, _ in runs}) == 1:
        count = sum(count for _, count in runs)
        return pa.repeat(pa.scalar(runs[0][0], kind), count)
    values = pa.array([value for value, _ in runs], kind)
    # As numbers of Python: Arrow 15 does not take those of an array.
    ends = [*accumulate(count for _, count in runs)]
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, values))


def _numbers(runs: Sequence[tuple[int, int]]) -> pa.Array:
    """Return an array of 32-bit numbers, each a number of times."""
    if len({value for value, _ in runs}) == 1:
        return _repeated(runs, pa.int32())
    parts = [
        value.to_bytes(4, sys.byteorder, signed=True) * count for value, count in runs
    ]
    return _fixed(pa.int32(), b"".join(parts), 4)


def _partition_form(field: pa.Field) -> _Form | None:
    if field.type != pa.int32():
        return None
    return lambda chunk: _numbers(
        [(place.partition.partition, place.rows) for place in chunk.places]
    )


def _offset_form(field: pa.Field) -> _Form | None:
    if field.type != pa.int64():
        return None
    return lambda chunk: _fixed(pa.int64(), _made(chunk.columns.offsets), 8)


def _timestamp_form(field: pa.Field) -> _Form | None:
    kind = field.type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return None
    if kind.unit not in {"ms", "us"}:
        return None

    def make(chunk: _Chunk) -> pa.Array:
        columns = chunk.columns
        numbers = _fixed(pa.int64(), _made(columns.timestamps), 8)
        made = _times(numbers, columns.timeless, pa.timestamp("ms", tz=kind.tz))
        try:
            return made.cast(kind)
        except pa.ArrowInvalid as error:
            name = chunk.name(made, lambda part: part.cast(kind))
            raise ArgumentValueError(
                f"a timestamp of {name} does not fit in microseconds; read the column "
                f"in milliseconds: {error}"
            ) from error

    return make


def _run_form(number: int, field: pa.Field) -> _Form | None:
    if field.type != pa.int32():
        return None

    return lambda chunk: _numbers([(run[number], run[0]) for run in chunk.runs])


def _headers_form(field: pa.Field) -> _Form | None:
    kind = field.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return None
    inner = list(kind.value_type)
    names, types = [each.name for each in inner], [each.type for each in inner]
    if types != [pa.string(), pa.binary()] or names[1] != "value":
        return None
    if names[0] not in {"name", "key"} or not inner[1].nullable:
        return None

    def make(chunk: _Chunk) -> pa.Array:
        made = _headers(_made(chunk.columns.headers), chunk.columns.length, kind)
        if not field.nullable:
            return made
        # As in Spark's connector, a record without headers has null, and not an empty
        # list. The first buffer becomes the validity; offsets and children are shared.
        present = pc.not_equal(pc.list_value_length(made), 0)
        buffers = [present.buffers()[1], made.buffers()[1]]
        return pa.Array.from_buffers(kind, len(made), buffers, children=[made.values])

    return make


#: Makes the form of a column from its field; None if it cannot have that type.
_FORMS: dict[str, Callable[[pa.Field], _Form | None]] = {
    "key": _bytes_form,
    "value": _bytes_form,
    "topic": _topic_form,
    "partition": _partition_form,
    "offset": _offset_form,
    "timestamp": _timestamp_form,
    "timestamp_type": partial(_run_form, 1),
    "headers": _headers_form,
    "leader_epoch": partial(_run_form, 2),
}
_CAN_BE_NULL = frozenset({"key", "value", "timestamp"})


class RangeReader(AsyncIterator[pa.RecordBatch]):
    """Reads ranges of offsets; `read_ranges` makes one and describes it.

    One task at a time may read from it. It has no task of its own.
    """

    def __init__(self, client: Client, form: _RangeForm) -> None:
        # A reference, since a client that is collected ends its connections.
        self._client = client
        self._form = form
        self._columns = ColumnsBuilder(form.wanted)
        self._fetcher: RangeFetcher | None = None
        # The rest of the ranges, when the reader has ended.
        self._left: list[OffsetRange] = []
        # Whether a batch may have records of several ranges.
        self._joins = True
        self._is_reading = False

    def _begin(self, fetcher: RangeFetcher) -> None:
        self._fetcher = fetcher

    def __aiter__(self) -> RangeReader:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """Return the next batch, which has at least one record.

        Raises:
            StopAsyncIteration: all ranges were read, or the reader was closed.
            UsageError: another task is reading.
            KafkaError: see `read_ranges`.
        """
        if self._is_reading:
            raise UsageError("another task is reading these ranges")
        self._is_reading = True
        try:
            while (fetcher := self._fetcher) is not None:
                part = await fetcher.part()
                if part is None:
                    self._end()
                    continue
                await self._prepare(fetcher, part)
                if (batch := self._read(fetcher, part)) is not None:
                    return batch
        finally:
            self._is_reading = False
        raise StopAsyncIteration

    def remaining(self) -> list[OffsetRange]:
        """Return the ranges that are left, in the order given; asks no broker.

        A range that was begun starts at the offset after its last record. After
        `aclose` these are the ranges that were left then.
        """
        return self._left if self._fetcher is None else self._fetcher.remaining()

    async def aclose(self) -> None:
        """End reading; records that were fetched and not returned are dropped.

        Raises:
            UsageError: another task is reading.
        """
        if self._is_reading:
            raise UsageError("another task is reading these ranges")
        self._end()

    def _end(self) -> None:
        if self._fetcher is not None:
            self._left = self._fetcher.remaining()
            self._fetcher.close()
            self._fetcher = None

    async def _prepare(self, fetcher: RangeFetcher, part: RangePart) -> None:
        try:
            await part.prepare()
        except (CorruptRecord, RecordTooLarge):
            # Back to the last record that was handed out: the next step fetches again.
            fetcher.take_back(part.state, part.state.accepted)
            raise

    def _read(self, fetcher: RangeFetcher, part: RangePart) -> pa.RecordBatch | None:
        # No await here: a cancelled step has taken a whole batch or nothing.
        before: dict[RangeState, int] = {}
        try:
            chunk = self._chunk(fetcher, part, before)
            return self._form.batch(chunk) if chunk.columns.length else None
        except Exception:
            # The decoded records are dropped, and the positions go back with them.
            self._columns = ColumnsBuilder(self._form.wanted)
            for each, accepted in before.items():
                fetcher.take_back(each, accepted)
            if len(before) > 1:
                # One range has records that this form cannot hold. The others can be
                # read if no batch has records of two ranges.
                self._joins = False
                return None
            raise

    def _chunk(
        self, fetcher: RangeFetcher, part: RangePart, before: dict[RangeState, int]
    ) -> _Chunk:
        """Decode parts, as long as they are here and small.

        Args:
            fetcher: has the parts.
            part: the first of them.
            before: gets the offsets that were accepted before of their ranges.
        """
        columns, places = self._columns, list[_ChunkPart]()
        runs: list[tuple[int, int, int]] = []
        following: RangePart | None = part
        while following is not None:
            part, start = following, following.position
            before.setdefault(part.state, part.state.accepted)
            length = columns.length
            is_sound = self._gather(part, runs)
            if rows := columns.length - length:
                places.append(_ChunkPart(part.within.partition, start, rows))
            fetcher.accept(part)
            if not is_sound:
                # The network may be the cause: the corrupt batch is fetched once more.
                fetcher.take_back(part.state, part.state.accepted)
            is_over = not is_sound or not part.is_read or not self._joins
            if is_over or columns.size >= _SMALL:
                break
            following = fetcher.following()
        return _Chunk(columns.finish(), places, runs)

    def _gather(self, part: RangePart, runs: list[tuple[int, int, int]]) -> bool:
        """Decode batches of a part until it is read, or until there are enough bytes.

        Args:
            part: the part.
            runs: gets the runs of its batches.

        Returns:
            Whether no batch was corrupt.
        """
        columns = self._columns
        tp, _, end = part.within
        try:
            while columns.size < _ENOUGH and (batch := part.next()) is not None:
                before = columns.length
                if not part.is_prepared:
                    # `_prepare` decompresses it before the next chunk begins.
                    break
                if not batch.add_to(columns, *tp, part.position, end):
                    # More than Arrow can address: it comes with the next chunk.
                    break
                count = columns.length - before
                runs.append((count, int(batch.timestamp_type), batch.leader_epoch))
                part.advance()
        except (CorruptRecord, RecordTooLarge) as error:
            # The sound records before it are handed out first. The next chunk begins
            # with the corrupt batch, and raises.
            if not columns.length:
                part.locate(error)
                raise
            return False
        return True


# ---- topics --------------------------------------------------------------------------

#: A place in a log: its beginning or its end, or the first record of a time or later.
Place: TypeAlias = Literal["earliest", "latest"] | datetime | int
#: Where to begin or to end: a place in all logs, or an offset or a place for each of
#: some partitions.
Bound: TypeAlias = Place | Mapping[TopicPartition, Place]
#: Names of columns; or types by names; or a schema.
ColumnChoice: TypeAlias = Union[  # as text, because the docs do without pyarrow
    Sequence[str], Mapping[str, "pa.DataType | str | None"], "pa.Schema"
]
#: The most records of a batch: a library that keeps a batch keeps all of its memory.
_MOST_RECORDS = 131_072
_FETCH_BYTES = 4 * 2**20
#: Most topics that the name of a reader has.
_SHOWN = 3
_DEFAULTS = {
    field.name: field
    for field in [
        *_SCHEMA_WITH_HEADERS,
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
    ]
}


def read_table(  # noqa: PLR0913 - what is read, by name
    servers: str | Sequence[str] | ClientConfig,
    topic: str | TopicPartition | Iterable[str | TopicPartition],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: ColumnChoice | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    fetch_bytes: int = _FETCH_BYTES,
    **options: Unpack[ClientOptions],
) -> pa.Table:
    """Read topics as one Arrow table; blocks the caller, who needs no event loop.

    Without ``start`` and ``end`` that is all that the topics hold now. The rows of a
    partition are in the order of their offsets, and the partitions follow each other;
    but if a leader is late, others go first, so sort the table where that matters. The
    whole table is in memory.

    The call works with an event loop of its own in a thread of its own. So it may be
    made in any thread, also where an event loop runs, as in a notebook, which stands
    still meanwhile. The thread and the connections end with the call. Ctrl+C ends it,
    too.

    A place in the logs is one of these:

    - ``"earliest"``: the first record kept when reading comes to the partition;
    - ``"latest"``: after the last record that can be read now: the high watermark, or
      with ``read_committed`` the last stable offset;
    - a datetime with a time zone: the first record kept with that timestamp or a later
      one. Without such a record it is ``"latest"``;
    - milliseconds since the Unix epoch: likewise. Numbers below 100,000,000,000 (March
      1973) are refused: such a number is an offset by mistake.

    A mapping gives some partitions an offset (an int), a word or a datetime each. The
    others begin at ``"earliest"`` and end at ``"latest"``.

    A time names one record of each log, and the log is read from there, or up to there,
    in its own order. Where timestamps are not ascending, records from outside of the
    times can be among the rows, and records from within be missing. The marker that
    ends a transaction counts, too, and has the time at which it was written.

    Records that are written after the call began are not read, with one exception: the
    call waits for an offset to end at that the log does not reach yet.

    Connecting takes ``default_api_timeout_ms`` at most, and so does looking up the
    offsets. Reading ends with `RequestTimeout` if nothing comes for that long.

    Args:
        servers: ``"host:port,host2:port"``, or a sequence of ``"host:port"``; or a
            `kafkaio.ClientConfig`, for example ``ClientConfig.from_properties(...)``.
        topic: the name of a topic, a TopicPartition, or any number of both.
        start: the place of the first record.
        end: the place of the first record that is not read any more.
        columns: their names, in any order: those of `schema`, ``headers``,
            ``timestamp_type`` and ``leader_epoch``. Or a mapping from names to types,
            such as ``{"value": "string", "offset": None}``, where None is the type of
            `schema`; or a pyarrow Schema. `read_ranges` has the types that a column
            can have. Other columns are not decoded. The columns of `schema` by
            default.
        isolation_level: ``"read_committed"`` leaves out records of aborted and of open
            transactions.
        fetch_bytes: the most bytes of one answer, as they are sent; one batch that is
            larger comes whole.
        options: see `kafkaio.ClientConfig`.

    Raises:
        OffsetOutOfRange: an offset to begin at is not in the log (any more), or records
            were deleted while their partition was being read.
        UnknownTopicOrPartition: the topic or partition does not exist, or the topic
            was made again meanwhile. None is created.
        BrokerNotAvailable: no server answered in time.
        RequestTimeout: no answer came in time; the cause is the last failure.
        AuthenticationError: the servers refuse the client's identity.
        AuthorizationError: the client may not read a topic.
        KafkaError: a step of `read_ranges` raised it.
        ConfigurationError: an option is unknown or impossible.
        ArgumentTypeError: an argument has the wrong type. A `kafkaio.Client` is one: it
            belongs to an event loop, so give it to `read_table_async`.
        ArgumentValueError: a place is impossible, for example a datetime without a
            time zone, or a partition that is not read; or a column does not exist, or
            cannot have that type.
    """
    from kafkaio._runtime.blocking import BlockingIterator

    home = _home_of(servers, options, is_blocking=True)
    choice = _Choice(topic, start, end, columns, isolation_level)
    reader = TopicReader(home, choice, fetch_bytes, None)
    # Closed also after Ctrl+C or an error: the thread and the connections end here.
    with closing(BlockingIterator(reader, choice.name)) as batches:
        return pa.Table.from_batches([*batches], choice.schema)


def read_batches(  # noqa: PLR0913 - what is read, by name
    servers: str | Sequence[str] | ClientConfig,
    topic: str | TopicPartition | Iterable[str | TopicPartition],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: ColumnChoice | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    fetch_bytes: int = _FETCH_BYTES,
    max_records: int = _MOST_RECORDS,
    **options: Unpack[ClientOptions],
) -> pa.RecordBatchReader:
    """Read topics as a reader of Arrow batches; blocks those who read from it.

    Libraries take it as a source: DuckDB, Polars, writers of Delta Lake and Iceberg,
    datasets of pyarrow. The batches have the rows of `read_table`. The call returns
    when the offsets are known: records that are written later are not read.

    Memory is bounded, whatever the topics hold: a batch is made when it is asked for,
    and the next fetches are under way meanwhile, as `read_ranges` says. A batch has
    about 32 MiB of decompressed records at most; or one record batch of Kafka that is
    larger.

    The reader has a thread and connections of its own. They end when everything was
    read, when reading fails, is interrupted by Ctrl+C, and when the reader is collected
    (``del reader``). ``reader.close()`` does not end them: pyarrow does not tell the
    source of it. Any thread may read, one at a time; other processes may not.

    A step raises what `read_ranges` says. A library that reads through Arrow's C
    interface raises an error of its own instead, with that text. Another step then
    raises `ClosedError`, so that a failure is never taken for the end.

    Args:
        servers: as for `read_table`.
        topic: as for `read_table`.
        start: as for `read_table`.
        end: as for `read_table`.
        columns: as for `read_table`.
        isolation_level: as for `read_table`.
        fetch_bytes: as for `read_table`.
        max_records: the most rows of a batch.
        options: see `kafkaio.ClientConfig`.

    Raises:
        KafkaError: as for `read_table`, except the errors of a step.
    """
    from kafkaio._runtime.blocking import BlockingIterator

    home = _home_of(servers, options, is_blocking=True)
    choice = _Choice(topic, start, end, columns, isolation_level)
    reader = TopicReader(home, choice, fetch_bytes, max_records)
    batches = BlockingIterator(reader, choice.name)
    return pa.RecordBatchReader.from_batches(choice.schema, batches)


async def read_table_async(  # noqa: PLR0913 - what is read, by name
    servers: str | Sequence[str] | ClientConfig | Client,
    topic: str | TopicPartition | Iterable[str | TopicPartition],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: ColumnChoice | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    fetch_bytes: int = _FETCH_BYTES,
    **options: Unpack[ClientOptions],
) -> pa.Table:
    """Read topics as one Arrow table, as `read_table` does, on the running event loop.

    If the call is cancelled, its connections are closed.

    Args:
        servers: as for `read_table`; or a client that was started, which stays open.
        topic: as for `read_table`.
        start: as for `read_table`.
        end: as for `read_table`.
        columns: as for `read_table`.
        isolation_level: as for `read_table`.
        fetch_bytes: as for `read_table`.
        options: see `kafkaio.ClientConfig`; none with a client.

    Raises:
        KafkaError: as for `read_table`.
    """
    home = _home_of(servers, options)
    choice = _Choice(topic, start, end, columns, isolation_level)
    async with TopicReader(home, choice, fetch_bytes, None) as reader:
        return pa.Table.from_batches([batch async for batch in reader], choice.schema)


def read_batches_async(  # noqa: PLR0913 - what is read, by name
    servers: str | Sequence[str] | ClientConfig | Client,
    topic: str | TopicPartition | Iterable[str | TopicPartition],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: ColumnChoice | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    fetch_bytes: int = _FETCH_BYTES,
    max_records: int = _MOST_RECORDS,
    **options: Unpack[ClientOptions],
) -> TopicReader:
    """Read topics as Arrow batches, as `read_batches` does, on the running event loop.

    ``async with`` connects, looks up the offsets, and closes in the end::

        async with read_batches_async("localhost:9092", "orders") as batches:
            async for batch in batches:
                print(batch.num_rows)

    Args:
        servers: as for `read_table`; or a client that was started, which stays open.
        topic: as for `read_table`.
        start: as for `read_table`.
        end: as for `read_table`.
        columns: as for `read_table`.
        isolation_level: as for `read_table`.
        fetch_bytes: as for `read_table`.
        max_records: the most rows of a batch.
        options: see `kafkaio.ClientConfig`; none with a client.

    Raises:
        ConfigurationError: an option is unknown or impossible.
        ArgumentTypeError: as for `read_table`.
        ArgumentValueError: as for `read_table`.
    """
    home = _home_of(servers, options)
    choice = _Choice(topic, start, end, columns, isolation_level)
    return TopicReader(home, choice, fetch_bytes, max_records)


class TopicReader(AsyncIterator[pa.RecordBatch]):
    """Reads topics; `read_batches_async` makes one and describes it.

    One task at a time may read from it. It has no task of its own. One that has its own
    client, and is neither read to the end nor closed, gives a ResourceWarning.

    Attributes:
        schema: the schema of the batches.
    """

    def __init__(
        self,
        home: Client | ClientConfig,
        choice: _Choice,
        fetch_bytes: int,
        max_records: int | None,
    ) -> None:
        from kafkaio._client.client import Client

        self.schema: pa.Schema = choice.schema
        self._choice = choice
        self._home = home
        self._has_own_client = not isinstance(home, Client)
        self._client: Client | None = None
        self._fetch_bytes = fetch_bytes
        self._max_records = count_of("max_records", max_records, _MAX_INT32)
        self._reader: RangeReader | None = None
        # The rest of a batch that was larger than `max_records`.
        self._rest: pa.RecordBatch | None = None
        self._topic_ids: dict[str, UUID] = {}
        # Where reading has begun, to tell a log that has lost its start from a hole.
        self._starts: dict[TopicPartition, int] = {}
        self._is_reading = False
        self._is_closed = False
        config = home.config if isinstance(home, Client) else home
        _check_fetch_bytes(fetch_bytes, config)

    async def start(self) -> None:
        """Connect, and look up the offsets to read. May be called again.

        The first step does so otherwise. If the call fails or is cancelled, the
        connections are closed, and the next call begins anew.

        Raises:
            ClosedError: the reader, or the client that was given, is closed.
            UsageError: another task is reading.
            KafkaError: as for `read_table`.
        """
        self._check()
        if self._is_closed:
            raise ClosedError(f"{self._choice.name} is closed")
        self._is_reading = True
        try:
            await self._begin()
        finally:
            self._is_reading = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """Return the next batch, which has at least one record.

        A step that raises or is cancelled has taken nothing: the next one goes on at
        the same record.

        Raises:
            StopAsyncIteration: everything was read, or the reader was closed.
            UsageError: another task is reading.
            KafkaError: as for `read_ranges`; the first step also as `start`.
        """
        self._check()
        self._is_reading = True
        try:
            return await self._next()
        finally:
            self._is_reading = False

    async def aclose(self) -> None:
        """End reading, and close the connections, unless they are of a client given.

        May be called again. Takes as long as `kafkaio.Client.close`.

        Raises:
            UsageError: another task is reading.
        """
        self._check()
        await self._end()

    def _check(self) -> None:
        if self._is_reading:
            raise UsageError(f"another task is reading: {self._choice.name}")

    async def _begin(self) -> RangeReader:
        from kafkaio._client.client import Client, cluster_of
        from kafkaio._client.log_ranges import LogRanges

        if self._reader is not None:
            return self._reader
        home, choice = self._home, self._choice
        client = home if isinstance(home, Client) else Client.from_config(home)
        if self._has_own_client:
            await client.start()
        try:
            within = client.config.default_api_timeout_ms / 1000
            lookup = LogRanges(cluster_of(client), level_of(choice.level), within)
            ranges = await lookup.find(choice.selection, choice.start, choice.end)
            if self._has_own_client:
                # The view of a new client is up to date. That of a user's client may be
                # older than the topics, and its ids wrong.
                view = client.cluster
                ids = {name: view.topic_id(name) for name in choice.selection.names}
                self._topic_ids = {name: each for name, each in ids.items() if each}
            reader = self._read(client, ranges)
        except BaseException:
            # Also if the call is cancelled: nobody else has a reference to the client.
            if self._has_own_client:
                await client.close()
            raise
        self._starts = {each.partition: each.start for each in ranges}
        self._client, self._reader = client, reader
        return reader

    def _read(self, client: Client, ranges: Sequence[OffsetRange]) -> RangeReader:
        return read_ranges(
            client,
            ranges,
            schema=self.schema,
            isolation_level=self._choice.level,
            fetch_bytes=self._fetch_bytes,
            topic_ids=self._topic_ids,
        )

    async def _next(self) -> pa.RecordBatch:
        # No await between taking the rest and returning it, so that a cancelled step
        # loses no records.
        batch, self._rest = self._rest, None
        while batch is None and not self._is_closed:
            reader = await self._begin()
            try:
                batch = await anext(reader, None)
            except OffsetOutOfRange as error:
                await self._follow_retention(reader, error)
            else:
                break
        if batch is None:
            await self._end()
            raise StopAsyncIteration
        if batch.num_rows > self._max_records:
            # Slices share the memory of the batch.
            self._rest = batch.slice(self._max_records)
            batch = batch.slice(0, self._max_records)
        return batch

    async def _follow_retention(
        self, reader: RangeReader, error: OffsetOutOfRange
    ) -> None:
        """Continue at the present start of a log, if nothing of it was read yet.

        Otherwise a topic that loses its oldest records by retention could not be read
        to its end, if that takes longer than the life of its segments.

        Raises:
            OffsetOutOfRange: the error that was given. It is about an offset that the
                user named, or about the middle of a log.
        """
        tp, position = TopicPartition(error.topic, error.partition), error.position
        # Only an offset that we have looked up may move: "earliest", or that of a time.
        # The offset of the error is that of the start until a record was read.
        is_named = tp in self._choice.start.offsets
        if is_named or self._starts.get(tp) != position or error.earliest <= position:
            raise error
        assert self._client is not None  # it has begun
        left = [
            each._replace(start=min(error.earliest, each.end))
            if each.partition == tp
            else each
            for each in reader.remaining()
        ]
        # The ranges of the other partitions continue where the old reader was.
        await reader.aclose()
        self._starts[tp] = error.earliest
        self._reader = self._read(self._client, left)

    async def _end(self) -> None:
        self._is_closed = True
        self._rest = None
        if self._reader is not None:
            await self._reader.aclose()
        if self._client is not None and self._has_own_client:
            await self._client.close()


class _Choice:
    """The arguments of a read, checked.

    Attributes:
        selection: the partitions.
        start: where to begin.
        end: where to end.
        level: the isolation level.
        schema: the columns.
        name: of what reads it, for messages.
    """

    def __init__(
        self,
        topic: object,
        start: object,
        end: object,
        columns: object,
        level: Literal["read_uncommitted", "read_committed"],
    ) -> None:
        from kafkaio._client.log_ranges import check_edges, edge_of, selection_of
        from kafkaio._client.offsets import EARLIEST, LATEST

        self.selection: Selection = selection_of(topic)
        self.start: Edge = edge_of("start", start, EARLIEST)
        self.end: Edge = edge_of("end", end, LATEST)
        check_edges(self.selection, self.start, self.end)
        level_of(level)
        self.level: Literal["read_uncommitted", "read_committed"] = level
        self.schema: pa.Schema = _schema_of(columns)
        names = sorted(self.selection.names)
        more = ["..."] if len(names) > _SHOWN else []
        self.name: str = f"the reader of {', '.join([*names[:_SHOWN], *more])}"


def _home_of(
    servers: object, options: Mapping[str, object], *, is_blocking: bool = False
) -> Client | ClientConfig:
    from kafkaio._client.client import Client
    from kafkaio._config import ClientConfig

    if is_blocking and isinstance(servers, Client):
        raise ArgumentTypeError(
            "servers must be addresses or a ClientConfig: a Client belongs to its "
            "event loop, and this call has one of its own; give it to read_table_async "
            "or read_batches_async"
        )
    if not isinstance(servers, Client | ClientConfig):
        # The configuration checks the servers.
        return ClientConfig.of(servers, options)  # type: ignore[arg-type]
    if options:
        raise ArgumentValueError(
            f"{', '.join(options)}: a {type_name(servers)} has its options already"
        )
    return servers


def _schema_of(columns: object) -> pa.Schema:
    if columns is None:
        return _SCHEMA
    if not isinstance(columns, pa.Schema):
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise ArgumentTypeError(
                "columns must be a list of names, a mapping from names to types or a "
                f"Schema of pyarrow, not {type_name(columns)}"
            )
        types = columns if isinstance(columns, Mapping) else {}
        columns = [_field_of(name, types.get(name)) for name in columns]
    schema = pa.schema(columns)
    _RangeForm(schema)  # raises for unknown columns and types
    return schema


def _field_of(name: object, kind: object) -> pa.Field:
    default = _DEFAULTS.get(name)
    if default is None:
        raise ArgumentValueError(
            f"there is no column {name!r}; the columns are {', '.join(_DEFAULTS)}"
        )
    if kind is None:
        return default
    if isinstance(kind, str):
        try:
            kind = pa.type_for_alias(kind)
        except ValueError as error:
            raise ArgumentValueError(f"column {name!r}: {error}") from error
    if not isinstance(kind, pa.DataType):
        raise ArgumentTypeError(
            f"column {name!r} must have a type of pyarrow or its name, not "
            f"{type_name(kind)}"
        )
    return default.with_type(kind)


def with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """Return a table with another column in the place of one of that name."""
    index = table.schema.get_field_index(name)
    field = table.schema.field(index).with_type(column.type)
    return table.set_column(index, field, column)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables one after the other.

    Raises:
        pyarrow.ArrowInvalid: columns of the same name have different types.
    """
    return pa.concat_tables(tables)


def records_to_table(
    records: Sequence[Record[object, object]], *, headers: bool = False
) -> pa.Table:
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
        "key": objects_to_array([record.key for record in records]),
        "value": objects_to_array([record.value for record in records]),
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


def objects_to_array(values: Sequence[object]) -> pa.Array:
    """Return a column of deserialized objects, of the type that pyarrow infers.

    Raises:
        UsageError: it infers none.
    """
    are_bytes = all(value is None or isinstance(value, bytes) for value in values)
    try:
        return pa.array(values, pa.binary() if are_bytes else None)
    except pa.ArrowException as error:
        raise UsageError(
            f"Arrow has no column for what the deserializer returns: {error}; read the "
            f"topic as bytes, or by a deserializer that returns dicts of simple values"
        ) from error


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
    # A stable sort, which keeps the order of the rows of a partition.
    order = pc.sort_indices(found)
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
    # A column without values, such as one of the null type, has no keys.
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
    # The lengths and `flatten` both skip null lists, which may have values underneath.
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    names, values = column.flatten().flatten()
    if names.null_count:
        raise ArgumentValueError(f"column {name!r} has a header without a name")
    try:
        # Kafka's protocol has names as strings, which other clients decode as UTF-8.
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
        # Nulls can hide in the dictionary, and a slice of a large table may use a few
        # words of many: both are decoded and encoded anew.
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
    # An unsigned number that does not fit wraps around, and is refused as negative.
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
    # A slice of an array shares its buffer, from its offset on.
    start = numbers.offset * width
    return memoryview(numbers.buffers()[1])[start : start + len(numbers) * width]


def _bytes(chunk: pa.RecordBatch, name: str) -> pa.Array:
    return _as_bytes(chunk.column(name), name)


def _as_bytes(column: pa.Array, name: str) -> pa.Array:
    # As binary or large_binary; as the null type if the column has that.
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
