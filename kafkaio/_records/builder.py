"""Writing batches: the open batch of a producer, and small helpers for brokers."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from kafkaio._records._impl import RecordWriter, crc32c, decode_records, frame_batch
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    CONTROL,
    CRC_OFFSET,
    HEADER_OVERHEAD,
    LOG_APPEND_TIME,
    ONE_RECORD,
    TRANSACTIONAL,
    Origin,
    PlainRecord,
)
from kafkaio._records.compression import BytesLike, Compression, Compressor
from kafkaio.types import Headers, TimestampType

__all__ = [
    "BatchBuilder",
    "PlainRecord",
    "encode_batch",
    "with_base_offset",
    "with_log_append_time",
]

_PLACE = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_OFFSET = 35


class BatchBuilder(RecordWriter):
    """One batch of message format 2: filled, then built, perhaps more than once.

    Args:
        target_size: bytes, header included and before compression, that the batch
            may reach. The first record may pass it.
        compression: the codec.
        level: level of the codec, None for its default; see `Compressor`.
        transactional: whether the batch is part of a transaction.
        control: whether the batch is a marker and not data; only brokers write it.
        compressor: used in place of a new one made from ``compression`` and
            ``level``; a producer keeps one, because contexts are dear.

    Attributes:
        count: records appended so far.
        size_bytes: size of the batch, header included, before compression. It is
            exact with `Compression.NONE`; with others it is the estimate that
            the broker's limits are held against, and data that cannot be
            compressed may come out a little larger.
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
        RecordWriter.__init__(self, target_size)  # at half the price of super()
        self._compressor = compressor or Compressor(compression, level)
        self._attributes: int = self._compressor.codec
        if transactional:
            self._attributes |= TRANSACTIONAL
        if control:
            self._attributes |= CONTROL
        self._is_built = False
        self._body: bytes | None = None

    @staticmethod
    def size_of(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
        """Size, at the most and uncompressed, of a batch that holds this one record."""
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
        """Returns the batch, stamped with the producer's state.

        The first call closes the batch to more records and compresses them; later
        ones only stamp the header anew, as a retry after an epoch bump needs.

        Raises:
            UsageError: the batch holds no record.
        """
        self.close()
        self._is_built = True
        return frame_batch(
            self,
            self._compressed(),
            self._attributes,
            partition_leader_epoch,
            (producer_id, producer_epoch, base_sequence),
        )

    def _compressed(self) -> bytes | None:
        # None where the records stay as they are: to keep them would be to keep them
        # twice.
        if self._body is None and self._compressor.codec is not Compression.NONE:
            self._body = self._compressor.compress(self.section())
        return self._body

    def records(self) -> Iterator[PlainRecord]:
        """The records appended so far, in order; to split a batch that is too large."""
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
    """Returns one batch of all ``records``, as a broker's log would hold it.

    Raises:
        UsageError: there are no records.
    """
    builder = BatchBuilder(
        compression=compression, target_size=2**31 - 1, transactional=transactional
    )
    for timestamp, key, value, headers in records:
        builder.try_append(timestamp, key, value, headers)
    return with_base_offset(builder.build(), base_offset, leader_epoch)


def with_base_offset(batch: BytesLike, base_offset: int, leader_epoch: int) -> bytes:
    """Returns ``batch`` as a leader appends it: its place is outside the checksum."""
    copy = bytearray(batch)
    (length,) = struct.unpack_from(">i", copy, 8)
    _PLACE.pack_into(copy, 0, base_offset, length, leader_epoch)
    return bytes(copy)


def with_log_append_time(batch: BytesLike, timestamp: int) -> bytes:
    """Returns ``batch`` as a leader of a topic with log append time writes it."""
    copy = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(copy, ATTRIBUTES_OFFSET)
    _ATTRIBUTES.pack_into(copy, ATTRIBUTES_OFFSET, attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(copy, _MAX_TIMESTAMP_OFFSET, timestamp)
    _CRC.pack_into(copy, CRC_OFFSET, crc32c(memoryview(copy)[ATTRIBUTES_OFFSET:]))
    return bytes(copy)
