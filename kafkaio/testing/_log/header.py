"""Batch headers: what a log reads of a batch without decoding its records."""

from __future__ import annotations

import struct

from kafkaio._named_tuple import NamedTuple
from kafkaio._records._impl import crc32c
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE as BATCH_HEADER_SIZE,
    CONTROL,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kafkaio._records.compression import BytesLike
from kafkaio.testing._log.errors import CorruptBatchError

_HEADER = struct.Struct(BATCH_HEADER)
_MIN_LENGTH = BATCH_HEADER_SIZE - LENGTH_END


class LogBatchHeader(NamedTuple):
    """The header of a batch of message format 2, field by field.

    Attributes:
        base_offset: offset of the first record that the batch had when it was written.
        length: number of bytes after the length field.
        leader_epoch: epoch of the leader that appended the batch.
        magic: number of the message format.
        crc: checksum of everything after this field.
        attributes: codec and flags.
        last_offset_delta: offset of the last record, relative to the base offset.
        base_timestamp: the timestamp that the records' deltas are added to.
        max_timestamp: the greatest timestamp, or the log append time.
        producer_id: id of the producer, -1 if none.
        producer_epoch: epoch of the producer, -1 if none.
        base_sequence: sequence number of the first record, -1 if none.
        record_count: number of records in the batch.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes."""
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """Offset of the last record that the batch had when it was written."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, not data."""
        return self.attributes & CONTROL != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker set the timestamps."""
        return self.attributes & LOG_APPEND_TIME != 0


def read_header(data: BytesLike, position: int = 0) -> LogBatchHeader:
    """Read the header at ``position`` and check its fields.

    Raises:
        CorruptBatchError: it is truncated or has an impossible field.
    """
    if len(data) - position < BATCH_HEADER_SIZE:
        raise CorruptBatchError("a batch ends within its header")
    header = LogBatchHeader._make(_HEADER.unpack_from(data, position))
    if header.length < _MIN_LENGTH:
        raise CorruptBatchError(f"a batch has length {header.length}")
    # Batches of older formats are refused when they are produced.
    if header.magic != 2:
        raise CorruptBatchError(f"a batch has magic byte {header.magic}")
    if (
        header.base_offset < 0
        or header.last_offset_delta < 0
        or header.record_count < 0
    ):
        raise CorruptBatchError(
            f"a batch has base offset {header.base_offset}, last offset delta "
            f"{header.last_offset_delta} and {header.record_count} records"
        )
    return header


def check_batch(header: LogBatchHeader, raw: BytesLike) -> None:
    """Check a batch's length and checksum.

    Raises:
        CorruptBatchError: one of them is wrong.
    """
    if len(raw) != header.size:
        raise CorruptBatchError(
            f"the batch at offset {header.base_offset} has {len(raw)} of "
            f"{header.size} bytes"
        )
    # From the attributes on: the leader sets base offset and epoch without a new
    # checksum.
    actual = crc32c(memoryview(raw)[ATTRIBUTES_OFFSET:])
    if actual != header.crc:
        raise CorruptBatchError(
            f"the checksum of the batch at offset {header.base_offset} is "
            f"{actual:#010x}, not {header.crc:#010x} as written"
        )
