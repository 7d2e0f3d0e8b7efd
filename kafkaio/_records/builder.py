"""Writes batches: the open batch of a producer, and helpers for the embedded broker.

`BatchBuilder` inherits from the codec's `RecordWriter`, compiled or pure: a wrapper
around it would cost one more call per record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from kafkaio._records._impl import RecordWriter, batch_header, crc32c, decode_records
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    CONTROL,
    CRC_OFFSET,
    HEADER_OVERHEAD,
    LOG_APPEND_TIME,
    ONE_RECORD,
    TRANSACTIONAL,
    Origin,
    PlainRecord as PlainRecord,
)
from kafkaio._records.compression import BytesLike, Compression, Compressor
from kafkaio.types import Headers, TimestampType

_PLACE = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_OFFSET = 35


class BatchBuilder(RecordWriter):
    """One batch of message format 2: filled with records, then built once or more.

    Args:
        target_size: the most bytes of the batch, header included, before compression.
            Only the first record can exceed it.
        compression: the codec.
        level: level of the codec, None for its default; see `Compressor`.
        transactional: whether the batch is part of a transaction.
        control: whether the batch holds control records, which only brokers write.
        compressor: used instead of a new one of ``compression`` and ``level``. A
            producer keeps one, because its context is expensive to create.

    Attributes:
        count: number of records so far.
        size_bytes: size of the batch, header included, before compression. Without
            compression it is exact. With a codec it is the estimate to compare with the
            broker's limits; data that cannot be compressed can become a little larger.
        first_timestamp: timestamp of the first record; -1 in an empty batch.
        max_timestamp: the greatest timestamp; -1 in an empty batch.
    """

    __slots__ = ("_attributes", "_body", "_compressor", "_is_built")

    def __init__(
        self,
        target_size: int = 16_384,
        *,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        transactional: bool = False,
        control: bool = False,
        compressor: Compressor | None = None,
    ) -> None:
        RecordWriter.__init__(self, target_size)  # takes half the time of super()
        self._compressor = compressor or Compressor(compression, level)
        self._attributes: int = self._compressor.codec
        if transactional:
            self._attributes |= TRANSACTIONAL
        if control:
            self._attributes |= CONTROL
        self._is_built = False
        self._body: bytes | None = None

    @property
    def compression(self) -> Compression:
        """The codec."""
        return self._compressor.codec

    @staticmethod
    def size_of(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
        """The largest possible size of a batch of this one record, uncompressed."""
        size = ONE_RECORD
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        if headers:
            size += _size_of_headers(headers)
        return size

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        partition_leader_epoch: int = -1,
    ) -> bytes:
        """Return the batch, with the producer's state in its header.

        The first call closes the batch and compresses the records. Later calls only
        make a new header, as for a retry with another producer epoch.

        Raises:
            UsageError: the batch has no record.
        """
        header, records = self.build_parts(
            producer_id, producer_epoch, base_sequence, partition_leader_epoch
        )
        return b"".join((header, records))

    def build_parts(
        self,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        partition_leader_epoch: int = -1,
    ) -> tuple[bytes, bytes | memoryview]:
        """Return what ``build`` does as header and records, without copying these.

        Raises:
            UsageError: the batch has no record.
        """
        # Closed first: a record that came later would be in no batch.
        self.close()
        self._is_built = True
        # None without compression: a copy of the records would double their memory.
        if self._body is None and self._compressor.codec is not Compression.NONE:
            self._body = self._compressor.compress(self.section())
        header = batch_header(
            self,
            self._body,
            self._attributes,
            partition_leader_epoch,
            (producer_id, producer_epoch, base_sequence),
        )
        return header, self.view() if self._body is None else self._body

    def records(self) -> Iterator[PlainRecord]:
        """Yield the records appended so far, in order, to split a batch."""
        origin = Origin(
            topic="",
            partition=0,
            start_offset=0,
            base_offset=0,
            last_offset_delta=max(self.count - 1, 0),
            base_timestamp=self.first_timestamp,
            log_append_time=None,
            timestamp_type=TimestampType.CREATE,
            leader_epoch=-1,
        )
        for record in decode_records(self.section(), 0, self.count, origin):
            yield record.timestamp, record.key, record.value, record.headers

    def __repr__(self) -> str:
        state = "built" if self._is_built else "open"
        codec = self._compressor.codec.name.lower()
        return (
            f"<BatchBuilder {state} {codec} | {self.count} records, "
            f"{self.size_bytes} bytes>"
        )


def _size_of_headers(headers: Headers) -> int:
    pairs = headers.items() if hasattr(headers, "items") else headers
    return sum(
        HEADER_OVERHEAD + len(name.encode("utf-8", "replace")) + len(value or b"")
        for name, value in pairs
    )


def encode_batch(
    records: Iterable[tuple[int, bytes | None, bytes | None, Headers]],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = Compression.NONE,
    transactional: bool = False,
) -> bytes:
    """Return one batch of all ``records``, as it is in a broker's log.

    Raises:
        UsageError: ``records`` is empty.
    """
    builder = BatchBuilder(
        compression=compression, target_size=2**31 - 1, transactional=transactional
    )
    for timestamp, key, value, headers in records:
        builder.try_append(timestamp, key, value, headers)
    return with_base_offset(builder.build(), base_offset, leader_epoch)


def with_base_offset(batch: BytesLike, base_offset: int, leader_epoch: int) -> bytes:
    """Return ``batch`` with an offset and epoch, which the checksum does not cover."""
    copy = bytearray(batch)
    (length,) = struct.unpack_from(">i", copy, 8)
    _PLACE.pack_into(copy, 0, base_offset, length, leader_epoch)
    return bytes(copy)


def with_log_append_time(batch: BytesLike, timestamp: int) -> bytes:
    """Return ``batch`` with the broker's timestamp, as with log append time."""
    copy = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(copy, ATTRIBUTES_OFFSET)
    _ATTRIBUTES.pack_into(copy, ATTRIBUTES_OFFSET, attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(copy, _MAX_TIMESTAMP_OFFSET, timestamp)
    _CRC.pack_into(copy, CRC_OFFSET, crc32c(memoryview(copy)[ATTRIBUTES_OFFSET:]))
    return bytes(copy)
