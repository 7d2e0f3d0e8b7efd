"""What batches of every format have in common: records that fill a section of bytes."""

from __future__ import annotations

from typing import NamedTuple

from kafkaio._records._impl import (
    ColumnsBuilder,
    Record,
    RecordCursor,
    decode_keys,
    decode_records,
    decode_values,
)
from kafkaio._records._layout import Columns, Origin

__all__ = ["Section", "Sectioned"]


class Section(NamedTuple):
    """The records of a batch, decompressed, as the codecs read them.

    Attributes:
        data: what holds them.
        position: where they begin; they fill the data to its end.
        record_count: how many there are.
        origin: what they share.
    """

    data: bytes
    position: int
    record_count: int
    origin: Origin


class Sectioned:
    """A batch whose records can be read in several ways from one section.

    Every way raises `CorruptRecord` where the records cannot be decompressed or
    decoded, and gives the records from ``start_offset`` on, in their order.

    Attributes:
        next_offset: where to read on after the batch.
    """

    __slots__ = ()
    next_offset: int

    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """The records as bytes, decompressed anew by every call."""
        raise NotImplementedError

    def detach(self) -> None:
        """Keeps the batch's bytes for itself, and refers to nothing else any more."""

    def decode(self, topic: str, partition: int, start_offset: int = 0) -> list[Record]:
        """Decodes the records into a list.

        The records own their bytes: none of them keeps the batch in memory. With log
        append time every timestamp is the broker's.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
        """
        return decode_records(*self.section(topic, partition, start_offset))

    def iterate(
        self, topic: str, partition: int, start_offset: int = 0
    ) -> RecordCursor:
        """Checks the records and returns a cursor that makes one when asked for it.

        Only the cursor keeps the batch in memory, until it comes to its end or is
        stopped; the records own their bytes.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded; the cursor
                itself never fails.
        """
        section = self.section(topic, partition, start_offset)
        return RecordCursor(*section, self.next_offset)

    def keys(self, start_offset: int = 0) -> list[bytes | None]:
        """The keys alone, without a record around each.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
        """
        return decode_keys(*self.section("", 0, start_offset))

    def values(self, start_offset: int = 0) -> list[bytes | None]:
        """The values alone, without a record around each.

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
    ) -> bool:
        """Adds the records to columns that gather those of many batches.

        Returns:
            False where they would pass the columns' limit: nothing was added.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded. Nothing was
                added.
            UsageError: these records alone pass the columns' limit.
        """
        return columns.add(*self.section(topic, partition, start_offset))

    def columns(self, start_offset: int = 0, *, headers: bool = False) -> Columns:
        """The records as columns in the memory layout of Arrow.

        Raises:
            CorruptRecord: the records cannot be decompressed or decoded.
            UsageError: they are more than columns can hold.
        """
        builder = ColumnsBuilder(headers=headers)
        self.add_to(builder, "", 0, start_offset)
        return builder.finish()
