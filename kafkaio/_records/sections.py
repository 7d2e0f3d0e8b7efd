"""What batches of every message format have in common: ways to read their records."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kafkaio._named_tuple import NamedTuple
from kafkaio._records._impl import (
    ColumnsBuilder,
    Record,
    RecordCursor,
    decode_keys,
    decode_records,
    decode_values,
)
from kafkaio._records._layout import NO_END, Columns, DecodedColumns, Origin


class Section(NamedTuple):
    """The decompressed records of a batch, as the decoders read them.

    Attributes:
        data: holds the records.
        position: where they begin; they fill the data to its end.
        record_count: the number of records.
        origin: the facts that they share.
    """

    data: bytes
    position: int
    record_count: int
    origin: Origin


class ReadableBatch(ABC):
    """The ways to read the records of a batch; all of them use `section`.

    Every method returns the records from ``start_offset`` on, in order, and raises
    `CorruptRecord` if they cannot be decompressed or decoded.

    Attributes:
        next_offset: the offset after the batch.
    """

    __slots__ = ()
    next_offset: int

    @abstractmethod
    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """Return the records as bytes; every call decompresses them again."""

    def prepare(self, most: int) -> bool:
        """Decompress about ``most`` bytes; return whether the records can be read.

        The older formats cannot stop within a batch.
        """
        del most
        return True

    def detach(self) -> None:  # noqa: B027 - a batch that owns its bytes needs nothing
        """Copy the batch's bytes, so that the buffer around them is not referred to."""

    def extend(self, cursor: RecordCursor, check_crc: bool) -> bool:  # noqa: FBT001
        """Add the records to a cursor, if that is possible; see `BatchHeader.extend`.

        With the older formats it is not.
        """
        del cursor, check_crc
        return False

    def decode(self, topic: str, partition: int, start_offset: int = 0) -> list[Record]:
        """Decode the records into a list.

        The records own their bytes: none of them keeps the batch in memory. With log
        append time, every timestamp is the broker's.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
        """
        return decode_records(*self.section(topic, partition, start_offset))

    def iterate(
        self, topic: str, partition: int, start_offset: int = 0
    ) -> RecordCursor:
        """Check the records and return a cursor, which decodes them one by one.

        The cursor keeps the batch in memory until it is at its end or stopped. The
        records own their bytes.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded. The iteration
                itself cannot fail.
        """
        section = self.section(topic, partition, start_offset)
        return RecordCursor(*section, self.next_offset)

    def keys(self, start_offset: int = 0) -> list[bytes | None]:
        """Return the keys only, without making records.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
        """
        return decode_keys(*self.section("", 0, start_offset))

    def values(self, start_offset: int = 0) -> list[bytes | None]:
        """Return the values only, without making records.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
        """
        return decode_values(*self.section("", 0, start_offset))

    def add_to(
        self,
        columns: ColumnsBuilder,
        topic: str,
        partition: int,
        start_offset: int = 0,
        end_offset: int = NO_END,
    ) -> bool:
        """Add the records before ``end_offset`` to the columns of many batches.

        Returns:
            False if they would exceed the columns' limit: nothing was added.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded. Nothing was
                added.
            UsageError: these records alone exceed the columns' limit.
        """
        return columns.add(*self.section(topic, partition, start_offset), end_offset)

    def columns(self, start_offset: int = 0, *, headers: bool = False) -> Columns:
        """Return the records as columns in the memory layout of Arrow.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
            UsageError: they are more than columns can hold.
        """
        builder = ColumnsBuilder(DecodedColumns(headers=headers))
        self.add_to(builder, "", 0, start_offset)
        return builder.finish()
