"""Reading batches of message format 2: the header now, the records when asked for."""

from __future__ import annotations

from kafkaio._records._impl import BatchHeader, RecordCursor, crc32c
from kafkaio._records._layout import ATTRIBUTES_OFFSET, BATCH_HEADER_SIZE
from kafkaio._records.compression import (
    DEFAULT_LIMIT,
    BytesLike,
    Compression,
    Decompressor,
)
from kafkaio._records.control import parse_control_type
from kafkaio._records.sections import Section, Sectioned
from kafkaio.errors import CorruptRecord

__all__ = ["RecordBatch"]

_NONE = Compression.NONE


class RecordBatch(BatchHeader, Sectioned):
    """One batch of message format 2, with the attributes of its `BatchHeader`.

    Treat them as read-only; `kafkaio._records._header.BatchHeader` tells their meaning.

    Args:
        data: the whole batch, header included; referred to, and not to be changed
            before `detach`.
        decompressor: what decompresses the records.
        max_decompressed: bytes that the records may decompress to.

    Raises:
        CorruptRecord: the header contradicts itself.
    """

    __slots__ = ("_decompressor", "_max_decompressed")

    def __init__(
        self,
        data: BytesLike,
        decompressor: Decompressor,
        max_decompressed: int = DEFAULT_LIMIT,
    ) -> None:
        BatchHeader.__init__(self, data)  # super() takes longer than the rest
        self._decompressor = decompressor
        self._max_decompressed = max_decompressed

    def check_crc(self) -> None:
        """Holds the checksum against what it covers: all after the checksum.

        The base offset, the length, the leader epoch and the magic byte stand before
        it. A wrong length or magic byte shows in other ways; a wrong offset or epoch
        cannot be noticed.

        Raises:
            CorruptRecord: they differ.
        """
        actual = crc32c(memoryview(self._data)[ATTRIBUTES_OFFSET:])
        if actual != self.checksum:
            raise CorruptRecord(
                f"the batch at offset {self.base_offset} has the checksum "
                f"{actual:#010x} but says {self.checksum:#010x}"
            )

    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """The records as bytes, decompressed anew by every call.

        Raises:
            CorruptRecord: the records cannot be decompressed.
        """
        origin = self.origin(topic, partition, start_offset)
        data, position = self._place()
        return Section(bytes(data), position, self.count, origin)

    def iterate(
        self, topic: str, partition: int, start_offset: int = 0
    ) -> RecordCursor:
        """Checks the records and returns a cursor; see `Sectioned.iterate`."""
        data, position = self._place()
        return self.cursor(data, position, topic, partition, start_offset)

    def _place(self) -> tuple[BytesLike, int]:
        # What holds the records, and where they begin in it.
        if self.compression is _NONE:
            return self._data, BATCH_HEADER_SIZE
        data = self._decompressor.decompress(
            self.compression,
            memoryview(self._data)[BATCH_HEADER_SIZE:],
            self._max_decompressed,
        )
        return data, 0

    def control_type(self) -> int | None:
        """What a control batch marks: 0 abort, 1 commit; ignore any other number.

        Returns:
            None where compaction has removed the marker from the batch.

        Raises:
            CorruptRecord: the marker cannot be decoded.
        """
        records = self.decode("", 0)
        if not records:
            return None
        return parse_control_type(records[0].key)

    def __repr__(self) -> str:
        return (
            f"<RecordBatch {self.base_offset}-{self.last_offset} "
            f"{self.compression.name.lower()} | {self.count} records, "
            f"{self.size_bytes} bytes>"
        )
