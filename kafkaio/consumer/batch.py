"""Batches of one partition, as a consumer hands them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from kafkaio._records.batch import RecordCursor
from kafkaio.consumer.reading.buffers import Frame
from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batch", "Piece", "first_of", "size_of", "to_table"]

#: A part of a batch: records to be made when asked for, or made already.
Piece: TypeAlias = RecordCursor | list[Record]


class Batch:
    """Consecutive records of one partition; at least one. Not to be changed.

    The records are made when they are asked for: iterate to have one at a time,
    ``values()`` to have no records at all. While the batch is kept, so are its
    bytes, decompressed; a record keeps only itself.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        assignment: number of the assignment that they were read under: a commit of
            the batch after the partition was lost is refused, even if the partition
            was assigned again since.
        pieces: what the records are made of; for kafkaio itself.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_frames",
        "_records",
        "assignment",
        "partition",
        "pieces",
        "topic",
    )

    def __init__(
        self,
        tp: TopicPartition,
        pieces: list[Piece],
        assignment: int = -1,
        frames: Sequence[Frame | None] = (),
    ) -> None:
        self.topic, self.partition = tp
        self.assignment = assignment
        self.pieces = pieces
        # What the pieces are in.
        self._frames = frames
        self._count = sum(map(size_of, pieces))
        self._records: list[Record] | None = None

    def __repr__(self) -> str:
        return (
            f"<Batch {self.topic}-{self.partition} | {self._count} records, offsets "
            f"{self.first_offset}-{self.last_offset}>"
        )

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        if self._records is not None:
            return iter(self._records)
        pieces = self.pieces
        if len(pieces) == 1:
            return _begin(pieces[0])
        return chain.from_iterable(map(_begin, pieces))

    @property
    def records(self) -> list[Record]:
        """The records in the order of their offsets, all made at once and kept."""
        if self._records is None:
            self._records = [*self]
        return self._records

    def values(self) -> list[bytes | None]:
        """The records' values, made without the records."""
        values: list[bytes | None] = []
        for piece in self.pieces:
            if isinstance(piece, list):
                values += [record.value for record in piece]
            else:
                values += piece.copy().take_values(self._count)
        return values

    def keys(self) -> list[bytes | None]:
        """The records' keys, made without the records."""
        keys: list[bytes | None] = []
        for piece in self.pieces:
            if isinstance(piece, list):
                keys += [record.key for record in piece]
            else:
                keys += piece.copy().take_keys(self._count)
        return keys

    def to_arrow(self, *, headers: bool = False) -> pa.Table:
        """The records as a table of pyarrow, made without the records.

        `kafkaio.arrow` tells its columns. With deserializers, key and value have the
        types that Arrow finds for their objects.

        Args:
            headers: whether the table has the records' headers.

        Raises:
            ImportError: pyarrow is not installed: ``pip install 'kafkaio[arrow]'``.
        """
        tp = self.topic_partition
        pieces = [(tp, piece) for piece in self.pieces]
        return to_table(pieces, self._count, headers=headers)

    def detach_from_ended(self) -> None:
        """Detach it if nothing else keeps what it came in, which counts no more."""
        if any(frame is not None and not frame.in_use for frame in self._frames):
            self.detach()

    def detach(self) -> None:
        """Keep the bytes of these records, and nothing around them."""
        for piece in self.pieces:
            if not isinstance(piece, list):
                piece.detach()

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the records came from."""
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
    def first(self) -> Record:
        """The first record."""
        return first_of(self.pieces[0])

    @property
    def last(self) -> Record:
        """The last record."""
        piece = self.pieces[-1]
        if isinstance(piece, list):
            return piece[-1]
        cursor = piece.copy()
        cursor.skip(cursor.remaining - 1)
        return next(cursor)


def to_table(
    pieces: Iterable[tuple[TopicPartition, Piece]], count: int, *, headers: bool = False
) -> pa.Table:
    """The records of pieces as one table; each piece is done with before the next.

    Args:
        pieces: all with records that are made already, or none.
        count: how many records there may be.
        headers: whether the table has the records' headers.

    Raises:
        ImportError: pyarrow is not installed.
    """
    from kafkaio.arrow import TableBuilder, records_to_table

    builder = TableBuilder(headers=headers)
    records: list[Record] = []
    for tp, piece in pieces:
        if isinstance(piece, list):
            records += piece
        else:
            builder.add_cursor(tp, piece, count)
    if records:
        return records_to_table(records, headers=headers)
    return builder.finish()


def first_of(piece: Piece) -> Record:
    """A piece's first record."""
    return next(_begin(piece))


def _begin(piece: Piece) -> Iterator[Record]:
    return iter(piece) if isinstance(piece, list) else piece.copy()


def size_of(piece: Piece) -> int:
    """How many records a piece has."""
    return len(piece) if isinstance(piece, list) else piece.remaining
