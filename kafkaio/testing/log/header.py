"""Batch headers: what a log reads of a batch without opening its records."""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafkaio._records._impl import crc32c
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CONTROL,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kafkaio._records.compression import BytesLike
from kafkaio.testing.log.errors import CorruptBatchError

__all__ = ["BATCH_HEADER_SIZE", "BatchHeader", "check_batch", "read_header"]

_HEADER = struct.Struct(BATCH_HEADER)
_MIN_LENGTH = BATCH_HEADER_SIZE - LENGTH_END


class BatchHeader(NamedTuple):
    """The header of a batch of message format 2, field by field.

    Attributes:
        base_offset: offset of the first record that the batch was written with.
        length: bytes after the length field.
        leader_epoch: epoch of the leader that appended the batch.
        magic: number of the message format.
        crc: checksum of all that follows it.
        attributes: codec and flags.
        last_offset_delta: offset of the last record, from the base offset.
        base_timestamp: what the records' timestamp deltas count from.
        max_timestamp: the greatest timestamp, or the log append time.
        producer_id: id of the producer, -1 if none.
        producer_epoch: epoch of the producer, -1 if none.
        base_sequence: sequence number of the first record, -1 if none.
        record_count: records in the batch.
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
        """Bytes of the whole batch."""
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """Offset of the last record that the batch was written with."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker and not data."""
        return self.attributes & CONTROL != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_log_append_time(self) -> bool:
        """Whether the timestamps are the broker's."""
        return self.attributes & LOG_APPEND_TIME != 0


def read_header(data: BytesLike, position: int = 0) -> BatchHeader:
    """Read the header at ``position``, and hold its fields against each other.

    Raises:
        CorruptBatchError: it is cut off or contradicts itself.
    """
    if len(data) - position < BATCH_HEADER_SIZE:
        raise CorruptBatchError("a batch ends within its header")
    header = BatchHeader._make(_HEADER.unpack_from(data, position))
    if header.length < _MIN_LENGTH:
        raise CorruptBatchError(f"a batch has the length {header.length}")
    if header.magic != 2:
        raise CorruptBatchError(f"a batch has the magic byte {header.magic}")
    if (
        header.base_offset < 0
        or header.last_offset_delta < 0
        or header.record_count < 0
    ):
        raise CorruptBatchError(
            f"a batch claims the offset {header.base_offset}, the last delta "
            f"{header.last_offset_delta} and {header.record_count} records"
        )
    return header


def check_batch(header: BatchHeader, raw: BytesLike) -> None:
    """Hold a batch against its length and its checksum.

    Raises:
        CorruptBatchError: they differ.
    """
    if len(raw) != header.size:
        raise CorruptBatchError(
            f"the batch at offset {header.base_offset} has {len(raw)} of "
            f"{header.size} bytes"
        )
    actual = crc32c(memoryview(raw)[ATTRIBUTES_OFFSET:])
    if actual != header.crc:
        raise CorruptBatchError(
            f"the batch at offset {header.base_offset} has the checksum "
            f"{actual:#010x} but says {header.crc:#010x}"
        )
