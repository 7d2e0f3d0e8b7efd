"""The header of a batch of message format 2: the pure twin, which is the reference."""

from __future__ import annotations

import struct

from kafkaio._records._crc import crc32c, crc32c_over
from kafkaio._records._cursor import RecordCursor
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Origin,
)
from kafkaio._records._pure import decode_records
from kafkaio._records.compression import BytesLike, Compression
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType

_HEADER = struct.Struct(BATCH_HEADER)
_MAX_OFFSET = 2**63 - 1
_CODECS = {int(codec): codec for codec in Compression}


class BatchHeader:
    """The fields of a batch's header.

    Args:
        data: the whole batch, header included. It is referred to, so it must not change
            before `detach`.

    Attributes:
        base_offset: the offset that the records' offset deltas are added to.
        last_offset: offset of the last record that the batch had when it was written;
            compaction may have removed that record.
        next_offset: the offset after the batch.
        leader_epoch: epoch of the leader that appended the batch, -1 if unknown.
        magic: number of the message format, 2.
        compression: the codec.
        timestamp_type: who set the timestamps.
        is_transactional: whether the batch is part of a transaction.
        is_control: whether the batch holds control records, not data.
        has_delete_horizon: whether ``base_timestamp`` is the time from which
            compaction may remove the batch's tombstones.
        base_timestamp: the timestamp that the records' timestamp deltas are added to.
        max_timestamp: the greatest timestamp, or the log append time.
        producer_id: id of the producer, -1 if none.
        producer_epoch: epoch of the producer, -1 if none.
        base_sequence: sequence number of the first record, -1 if none.
        count: number of records in the batch; compaction can leave none.
        size_bytes: size of the batch on the wire.
        checksum: the checksum in the header.

    Raises:
        CorruptRecord: the batch is too short, or a field has an impossible value.
    """

    __slots__ = (
        "_data",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "checksum",
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

    base_offset: int
    leader_epoch: int
    magic: int
    checksum: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __init__(self, data: BytesLike) -> None:
        if len(data) < BATCH_HEADER_SIZE:
            raise CorruptRecord(f"a batch of {len(data)} bytes is too short for one")
        (
            self.base_offset,
            _,
            self.leader_epoch,
            self.magic,
            self.checksum,
            attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = _HEADER.unpack_from(data)
        # Not a copy: the batches of a response share its buffer.
        self._data: BytesLike = data
        self.size_bytes: int = len(data)
        self.compression: Compression = _codec_of(attributes)
        self.timestamp_type: TimestampType = TimestampType(
            attributes & LOG_APPEND_TIME != 0
        )
        self.is_transactional: bool = bool(attributes & TRANSACTIONAL)
        self.is_control: bool = bool(attributes & CONTROL)
        self.has_delete_horizon: bool = bool(attributes & DELETE_HORIZON)
        if self.count < 0 or last_offset_delta < 0:
            raise CorruptRecord(
                f"a batch claims {self.count} records and the last offset delta "
                f"{last_offset_delta}"
            )
        self.last_offset: int = self.base_offset + last_offset_delta
        self.next_offset: int = self.last_offset + 1
        # The offset after the batch must fit in 64 bits, too.
        if self.base_offset < 0 or self.last_offset >= _MAX_OFFSET:
            raise CorruptRecord(f"a batch claims the offset {self.base_offset}")

    def detach(self) -> None:
        """Copy the batch's bytes, so that ``data`` is no longer referred to."""
        if not isinstance(self._data, bytes):
            self._data = bytes(self._data)

    def computed_checksum(self) -> int:
        """Compute the checksum of the bytes that it covers."""
        return crc32c(memoryview(self._data)[ATTRIBUTES_OFFSET:])

    def renumbered(
        self,
        attributes: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        leader_epoch: int,
        *,
        whole: bool = False,
    ) -> bytes:
        """Return a header for the same records, sent by another producer.

        The base offset is 0. The checksum is not computed over the records: they are
        the same, so the difference follows from the two headers and the size of the
        records. And records that are damaged here do not get a fitting checksum.

        Args:
            attributes: the attributes to write.
            producer_id: id of the producer.
            producer_epoch: epoch of the producer.
            base_sequence: sequence number of the first record.
            leader_epoch: epoch of the leader.
            whole: whether to return the records with it.
        """
        old = bytes(self._data[:BATCH_HEADER_SIZE])
        length = self.size_bytes - LENGTH_END
        fields = list(_HEADER.unpack(old))
        fields[:3] = 0, length, leader_epoch
        fields[5] = attributes
        fields[9:12] = producer_id, producer_epoch, base_sequence
        new = _HEADER.pack(*fields)
        change = crc32c(old[ATTRIBUTES_OFFSET:]) ^ crc32c(new[ATTRIBUTES_OFFSET:])
        change = crc32c_over(change, self.size_bytes - BATCH_HEADER_SIZE)
        fields[4] = self.checksum ^ change
        header = _HEADER.pack(*fields)
        return header + self._data[BATCH_HEADER_SIZE:] if whole else header

    def origin(self, topic: str, partition: int, start_offset: int) -> Origin:
        """Return the facts that the batch's records share, for the decoder."""
        # With log append time, the header's maximum is the time of every record.
        is_log_append = self.timestamp_type is TimestampType.LOG_APPEND
        return Origin(
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

    def cursor(
        self,
        data: BytesLike,
        position: int,
        topic: str,
        partition: int,
        start_offset: int,
    ) -> RecordCursor:
        """Return a cursor over the records, which fill ``data`` from ``position`` on.

        Raises:
            CorruptRecord: the records cannot be decoded.
        """
        origin = self.origin(topic, partition, start_offset)
        # A copy, unless it is bytes: a cursor outlives the buffer of the response.
        owned = bytes(data)
        cursor = RecordCursor(owned, position, self.count, origin, self.next_offset)
        cursor._owner = _owner_of(data)
        return cursor

    def extend(self, cursor: RecordCursor, check_crc: bool) -> bool:  # noqa: FBT001
        """Add the records to a cursor over the batches before this one.

        That takes less time than another cursor, above all if batches are small.

        Args:
            cursor: the cursor that `cursor` returned, with records left. The batches
                must follow one another in the memory of one object, uncompressed.
            check_crc: whether to verify the checksum.

        Returns:
            False if the records of the cursor would differ in more than a cursor can
            say, or if the batch is corrupt: nothing was added.
        """
        if (
            type(cursor) is not RecordCursor
            or not cursor.remaining
            or self.compression is not Compression.NONE
            or self.is_control
            or self.base_offset < cursor._batch_end
        ):
            return False
        owner, last = _owner_of(self._data), cursor._records[0]
        if (
            self.timestamp_type is not last.timestamp_type
            or self.leader_epoch != last.leader_epoch
            or owner is None
            or owner is not cursor._owner
            or (check_crc and self.computed_checksum() != self.checksum)
        ):
            return False
        data = bytes(self._data)
        origin = self.origin(last.topic, last.partition, 0)
        try:
            records = decode_records(data, BATCH_HEADER_SIZE, self.count, origin)
        except CorruptRecord:
            return False
        if not records:
            return False
        cursor._ends = {left + len(records): at for left, at in cursor._ends.items()}
        cursor._ends[len(records)] = cursor._batch_end
        cursor._records[:0] = reversed(records)
        cursor._batch_end = self.next_offset
        cursor.remaining += len(records)
        cursor.bytes_left += len(data)
        return True


def _owner_of(data: BytesLike) -> object:
    """Return the object whose memory a view shows; None for anything but a view."""
    return data.obj if isinstance(data, memoryview) else None


def _codec_of(attributes: int) -> Compression:
    codec = _CODECS.get(attributes & CODEC_MASK)
    if codec is None:
        raise CorruptRecord(f"a batch has the attributes {attributes:#06x}")
    return codec
