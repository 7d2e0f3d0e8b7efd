"""Reading batches of message format 2: the header now, the records when asked for."""

from __future__ import annotations

import struct

from kafkaio._records._impl import crc32c
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Origin,
)
from kafkaio._records.compression import DEFAULT_LIMIT, Compression, Decompressor
from kafkaio._records.control import parse_control_type
from kafkaio._records.sections import Section, Sectioned
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType

__all__ = ["RecordBatch"]

_HEADER = struct.Struct(BATCH_HEADER)
_MAX_OFFSET = 2**63 - 1
_CODECS = {int(codec): codec for codec in Compression}


class RecordBatch(Sectioned):
    """One batch of message format 2. Treat its attributes as read-only.

    Args:
        data: the whole batch, header included.
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

    Raises:
        CorruptRecord: the header contradicts itself.
    """

    __slots__ = (
        "_checksum",
        "_data",
        "_decompressor",
        "_max_decompressed",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "compression",
        "count",
        "has_delete_horizon",
        "is_control",
        "is_transactional",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "next_offset",
        "producer_epoch",
        "producer_id",
        "size_bytes",
        "timestamp_type",
    )

    def __init__(
        self,
        data: bytes,
        decompressor: Decompressor,
        max_decompressed: int = DEFAULT_LIMIT,
    ) -> None:
        if len(data) < BATCH_HEADER_SIZE:
            raise CorruptRecord(f"a batch of {len(data)} bytes is too short for one")
        (
            self.base_offset,
            _,
            self.leader_epoch,
            self.magic,
            self._checksum,
            attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = _HEADER.unpack_from(data)
        self._data = data
        self._decompressor = decompressor
        self._max_decompressed = max_decompressed
        self.size_bytes = len(data)
        self.compression = _codec_of(attributes)
        self.timestamp_type = TimestampType(attributes & LOG_APPEND_TIME != 0)
        self.is_transactional = bool(attributes & TRANSACTIONAL)
        self.is_control = bool(attributes & CONTROL)
        self.has_delete_horizon = bool(attributes & DELETE_HORIZON)
        if self.count < 0 or last_offset_delta < 0:
            raise CorruptRecord(
                f"a batch claims {self.count} records and the last offset delta "
                f"{last_offset_delta}"
            )
        self.last_offset: int = self.base_offset + last_offset_delta
        self.next_offset = self.last_offset + 1
        if self.base_offset < 0 or self.last_offset >= _MAX_OFFSET:
            raise CorruptRecord(f"a batch claims the offset {self.base_offset}")

    def check_crc(self) -> None:
        """Holds the checksum against what it covers: all after the checksum.

        The base offset, the length, the leader epoch and the magic byte stand before
        it. A wrong length or magic byte shows in other ways; a wrong offset or epoch
        cannot be noticed.

        Raises:
            CorruptRecord: they differ.
        """
        actual = crc32c(memoryview(self._data)[ATTRIBUTES_OFFSET:])
        if actual != self._checksum:
            raise CorruptRecord(
                f"the batch at offset {self.base_offset} has the checksum "
                f"{actual:#010x} but says {self._checksum:#010x}"
            )

    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """The records as bytes, decompressed anew by every call.

        Raises:
            CorruptRecord: the records cannot be decompressed.
        """
        is_log_append = self.timestamp_type is TimestampType.LOG_APPEND
        origin = Origin(
            topic,
            partition,
            start_offset,
            self.base_offset,
            self.last_offset - self.base_offset,
            self.base_timestamp,
            self.max_timestamp if is_log_append else None,
            self.timestamp_type,
            self.leader_epoch,
        )
        if self.compression is Compression.NONE:
            return Section(self._data, BATCH_HEADER_SIZE, self.count, origin)
        data = self._decompressor.decompress(
            self.compression,
            memoryview(self._data)[BATCH_HEADER_SIZE:],
            self._max_decompressed,
        )
        return Section(data, 0, self.count, origin)

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


def _codec_of(attributes: int) -> Compression:
    codec = _CODECS.get(attributes & CODEC_MASK)
    if codec is None:
        raise CorruptRecord(f"a batch has the attributes {attributes:#06x}")
    return codec
