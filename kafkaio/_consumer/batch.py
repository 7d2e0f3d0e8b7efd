"""Batches of records of one partition, as a consumer hands them out.

A batch keeps cursors into decompressed record batches, and creates records on demand.
It keeps the bytes behind the cursors in memory, often those of a whole fetch response.
`detach` copies the batch's own bytes out of the response, so that a batch that is kept
for long keeps nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkaio._generic import Generic, K_co, V_co
from kafkaio._named_tuple import NamedTuple
from kafkaio._public import public
from kafkaio._records.batch import RecordCursor
from kafkaio.errors import ConfigurationError
from kafkaio.types import AnyRecord, OffsetAndMetadata, Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

#: A part of a batch: a cursor that makes its records, or the records themselves.
Piece: TypeAlias = RecordCursor | list[AnyRecord]
#: A part of a table, which need not have records.
TablePiece: TypeAlias = "Piece | ColumnPiece"
#: Makes a column of keys or values; None if it cannot yet.
ToArrow: TypeAlias = "Callable[[Sequence[bytes | None]], pa.Array | None]"


class ToColumns(NamedTuple):
    """How a topic's keys and values become columns of a table, whole batches at once.

    Attributes:
        key: makes a column of keys; None if they are bytes, or objects.
        value: makes a column of values; likewise.
    """

    key: ToArrow | None
    value: ToArrow | None


class DecodedPiece(list[AnyRecord]):
    """Deserialized records, and the bytes that they were made of.

    Args:
        records: the records.
        raw: the same, not deserialized.
        to_columns: makes columns of their bytes.
    """

    __slots__ = ("raw", "to_columns")

    def __init__(
        self, records: list[AnyRecord], raw: RecordCursor, to_columns: ToColumns
    ) -> None:
        super().__init__(records)
        self.raw: RecordCursor = raw
        self.to_columns: ToColumns = to_columns


class ColumnPiece:
    """Records as columns, without the records.

    Args:
        raw: the records, not deserialized.
        key: their keys, deserialized; None if these stay bytes.
        value: their values; likewise.
    """

    __slots__ = ("key", "raw", "value")

    def __init__(
        self, raw: RecordCursor, key: pa.Array | None, value: pa.Array | None
    ) -> None:
        self.raw: RecordCursor = raw
        self.key: pa.Array | None = key
        self.value: pa.Array | None = value


class Frame:
    """The bytes of one fetch response, which every record batch of it keeps in memory.

    Attributes:
        size: bytes of it that are records.
        in_use: the number of its record batches that were not read to their end.
    """

    __slots__ = ("in_use", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.in_use: int = 0


@public("kafkaio")
class Batch(Generic[K_co, V_co]):
    """Consecutive records of one partition, at least one. A batch is immutable.

    Records are made when they are asked for: iterate to have one at a time, or call
    `values` or `keys` to make no records at all. A batch that is kept also keeps the
    decompressed bytes of its records; a record keeps only its own bytes.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        assignment: number of the assignment under which the records were read. If the
            partition was lost, a commit of the batch is refused, even if the partition
            was assigned again since.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_frames",
        "_pieces",
        "_records",
        "assignment",
        "partition",
        "topic",
    )

    topic: str
    partition: int

    def __init__(
        self,
        tp: TopicPartition,
        pieces: list[Piece],
        assignment: int = -1,
        frames: Sequence[Frame | None] = (),
    ) -> None:
        self.topic, self.partition = tp
        self.assignment: int = assignment
        self._pieces = pieces
        # The fetch responses of the pieces; None for a piece with its own bytes.
        self._frames = frames
        self._count = sum(map(size_of, pieces))
        self._records: list[AnyRecord] | None = None

    def __repr__(self) -> str:
        return (
            f"<Batch {self.topic}-{self.partition} | {self._count} records, offsets "
            f"{self.first_offset}-{self.last_offset}>"
        )

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record[K_co, V_co]]:
        if self._records is not None:
            return iter(self._records)
        pieces = self._pieces
        if len(pieces) == 1:
            return _iterate(pieces[0])
        return chain.from_iterable(map(_iterate, pieces))

    @property
    def records(self) -> list[Record[K_co, V_co]]:
        """The records in the order of their offsets, made at once and then kept."""
        if self._records is None:
            self._records = [*self]
        return self._records

    def values(self) -> list[V_co]:
        """Return the values of the records, without making the records."""
        values: list[Any] = []
        for piece in self._pieces:
            if isinstance(piece, list):
                values += [record.value for record in piece]
            else:
                # A copy, as for iteration: a cursor can be read once, a batch again.
                values += piece.copy().take_values(self._count)
        return values

    def keys(self) -> list[K_co]:
        """Return the keys of the records, without making the records."""
        keys: list[Any] = []
        for piece in self._pieces:
            if isinstance(piece, list):
                keys += [record.key for record in piece]
            else:
                keys += piece.copy().take_keys(self._count)
        return keys

    def to_arrow(self, *, headers: bool = False) -> pa.Table:
        """Return the records as a pyarrow table, without making the records.

        `kafkaio.arrow` describes the columns. With deserializers, key and value have
        the types of their schemas (a deserializer with a method ``to_arrow``, such as
        `kafkaio.registry.Avro`), or the types that Arrow infers for the objects.

        Args:
            headers: whether the table has a column with the headers.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
            UsageError: Arrow has no type for the deserialized objects.
        """
        tp = self.topic_partition
        pieces = [(tp, piece) for piece in self._pieces]
        return to_table(pieces, self._count, headers=headers)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the records."""
        return TopicPartition(self.topic, self.partition)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.first.offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.last.offset

    @property
    def first(self) -> Record[K_co, V_co]:
        """The first record."""
        return first_of(self._pieces[0])

    @property
    def last(self) -> Record[K_co, V_co]:
        """The last record."""
        piece = self._pieces[-1]
        if isinstance(piece, list):
            return piece[-1]
        # Skipping creates no records.
        cursor = piece.copy()
        cursor.skip(cursor.remaining - 1)
        return first_of(cursor)


#: A batch inside a consumer, as `AnyRecord`.
AnyBatch: TypeAlias = Batch[Any, Any]


def detach(batch: AnyBatch) -> None:
    """Copy the bytes of a batch's records, so that it keeps no fetch response."""
    for piece in batch._pieces:
        if isinstance(piece, DecodedPiece):
            piece.raw.detach()
        elif not isinstance(piece, list):
            piece.detach()


def detach_if_alone(batch: AnyBatch) -> None:
    """Detach a batch if it alone keeps one of its fetch responses in memory.

    The buffers do not count such a response any more.
    """
    if any(frame is not None and not frame.in_use for frame in batch._frames):
        detach(batch)


def is_most_of_what_it_keeps(batch: AnyBatch) -> bool:
    """Whether a batch is at least half of the fetch responses that it keeps.

    A copy of its bytes would save little then, and take longer than all else that
    reading the batch takes.
    """
    kept = {id(frame): frame.size for frame in batch._frames if frame is not None}
    return 2 * sum(map(_bytes_of, batch._pieces)) >= sum(kept.values())


def _bytes_of(piece: Piece) -> int:
    # How much of a fetch response a piece needs; records own their bytes.
    if isinstance(piece, DecodedPiece):
        return piece.raw.bytes_left
    return 0 if isinstance(piece, list) else piece.bytes_left


def end_of(what: AnyRecord | AnyBatch) -> OffsetAndMetadata:
    """Return the offset after a record, or after a batch.

    After a batch it may be higher than the last record's offset plus one: the log
    cleaner may have removed records at the end of the record batch.
    """
    if isinstance(what, Record):
        return OffsetAndMetadata(what.offset + 1, leader_epoch=what.leader_epoch)
    piece = what._pieces[-1]
    if isinstance(piece, list):
        return end_of(piece[-1])
    cursor = piece.copy()
    cursor.skip(cursor.remaining - 1)
    last = next(cursor)
    return OffsetAndMetadata(cursor.next_offset, leader_epoch=last.leader_epoch)


def to_table(
    pieces: Iterable[tuple[TopicPartition, TablePiece]],
    count: int,
    *,
    headers: bool = False,
) -> pa.Table:
    """Return the records of several pieces as one table.

    Each piece is read to its end before the next one is taken from ``pieces``.

    Args:
        pieces: the records.
        count: the most records that there may be.
        headers: whether the table has a column with the headers.

    Raises:
        ImportError: pyarrow is not installed.
    """
    # Few consumers need it, and it loads pyarrow.
    from kafkaio.arrow import TableBuilder, concatenated, records_to_table

    builder = TableBuilder(headers=headers)
    records: list[AnyRecord] = []
    tables: list[pa.Table] = []

    def finish() -> None:
        if records:
            tables.append(records_to_table(records, headers=headers))
            records.clear()
        if builder.length:
            tables.append(builder.finish())

    for tp, piece in pieces:
        if isinstance(piece, ColumnPiece | DecodedPiece):
            finish()
            tables.append(_table_of(tp, piece, headers=headers))
        elif isinstance(piece, list):
            if builder.length:
                finish()
            records += piece
        else:
            if records:
                finish()
            builder.add_cursor(tp, piece, count)
    finish()
    return concatenated(tables) if tables else builder.finish()


def columns_at_once(raw: RecordCursor, to_columns: ToColumns) -> ColumnPiece | None:
    """Make the columns of records at once.

    Returns:
        None if that cannot be done yet, or if the bytes of a record are not valid:
        deserializing the records one by one finds out which.

    Raises:
        ConfigurationError: the deserializer cannot make columns at all.
    """
    count = raw.remaining
    key = value = None
    try:
        if (of_key := to_columns.key) is not None:
            key = of_key(raw.copy().take_keys(count))
        if (of_value := to_columns.value) is not None:
            value = of_value(raw.copy().take_values(count))
    except ConfigurationError:
        raise
    except Exception:  # noqa: BLE001 - the record raises its own error
        return None
    if (of_key and key is None) or (of_value and value is None):
        return None
    return ColumnPiece(raw, key, value)


def _table_of(
    tp: TopicPartition, piece: ColumnPiece | DecodedPiece, *, headers: bool
) -> pa.Table:
    from kafkaio.arrow import TableBuilder, with_column

    columns = _columns_of(piece) if isinstance(piece, DecodedPiece) else piece
    builder = TableBuilder(headers=headers)
    builder.add_cursor(tp, columns.raw)
    table = builder.finish()
    if columns.key is not None:
        table = with_column(table, "key", columns.key)
    if columns.value is not None:
        table = with_column(table, "value", columns.value)
    return table


def _columns_of(piece: DecodedPiece) -> ColumnPiece:
    # Of the bytes, as all schemas are known by now. Where that is not possible, for
    # example because a schema's id is in the headers, of the objects.
    from kafkaio.arrow import objects_to_array

    found = columns_at_once(piece.raw, piece.to_columns)
    key = None if found is None else found.key
    value = None if found is None else found.value
    if key is None:
        key = objects_to_array([record.key for record in piece])
    if value is None:
        value = objects_to_array([record.value for record in piece])
    return ColumnPiece(piece.raw, key, value)


def first_of(piece: TablePiece) -> AnyRecord:
    """Return the first record of a piece."""
    return next(_iterate(piece.raw if isinstance(piece, ColumnPiece) else piece))


def size_of(piece: TablePiece) -> int:
    """Return the number of records of a piece."""
    if isinstance(piece, ColumnPiece):
        return piece.raw.remaining
    return len(piece) if isinstance(piece, list) else piece.remaining


def _iterate(piece: Piece) -> Iterator[AnyRecord]:
    return iter(piece) if isinstance(piece, list) else piece.copy()
