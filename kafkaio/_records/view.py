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


class RecordBatch(BatchHeader, Sectioned):
    """One batch of message format 2. Treat its attributes as read-only.

    Args:
        data: the whole batch, header included; referred to, and not to be changed
            before `detach`.
        decompressor: what decompresses the records.
        max_decompressed: bytes that the records may decompress to.

    Attributes:
        base_offset: what the records' offset deltas count from.
        last_offset: offset of the last record that the batch was written with;
            compaction may since have removed it.
        next_offset: where to read on after this batch.
        leader_epoch: epoch of the leader that appended the batch, -1 if unknown.
        magic: number of the message format, 2.
        compression: the codec.
        timestamp_type: who set the timestamps.
        is_transactional: whether the batch is part of a transaction.
        is_control: whether the batch is a marker and not data.
        has_delete_horizon: whether ``base_timestamp`` is the time from which
            compaction may remove the batch's tombstones.
        base_timestamp: what the records' timestamp deltas count from.
        max_timestamp: the greatest timestamp, or the log append time.
        producer_id: id of the producer, -1 if none.
        producer_epoch: epoch of the producer, -1 if none.
        base_sequence: sequence number of the first record, -1 if none.
        count: records in the batch; compaction may leave none.
        size_bytes: size of the batch on the wire.
        checksum: the checksum that the batch carries.

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
        super().__init__(data)
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
        if self.compression is Compression.NONE:
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
