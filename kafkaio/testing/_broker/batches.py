"""Checks of record batches before a leader appends them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kafkaio._records._layout import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CONTROL,
)
from kafkaio._records.batch import read_batches
from kafkaio._records.control import ControlType, parse_end_txn_marker
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Buffer
from kafkaio.testing._broker.producers import ProducerBatch, TransactionMarker
from kafkaio.testing._broker.refusal import Malformed, Refusal
from kafkaio.testing._log import LogBatchHeader, LogError, read_header
from kafkaio.testing._log.header import check_batch
from kafkaio.testing._log.segment import decode

# Read here without the log's checks, because Kafka answers a client's mistakes with
# other codes than those of a damaged log.
_HEADER: Final = struct.Struct(BATCH_HEADER)


def producer_of(header: LogBatchHeader) -> ProducerBatch | None:
    """The fields for idempotence in a batch header; None without a producer id."""
    return None if header.producer_id < 0 else batch_of(header)


def batch_of(header: LogBatchHeader) -> ProducerBatch:
    """The fields of a batch header that the producer sets."""
    return ProducerBatch(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
        header.is_transactional,
        header.max_timestamp,
    )


def batches_of(data: bytes) -> Iterator[tuple[LogBatchHeader, bytes]]:
    """Yield whole batches, without checks: they were read from a log."""
    position = 0
    while position + BATCH_HEADER_SIZE <= len(data):
        header = read_header(data, position)
        yield header, data[position : position + header.size]
        position += header.size


def marker_of(header: LogBatchHeader, raw: bytes) -> TransactionMarker | None:
    """The marker in a control batch of a log; None if compaction has removed it."""
    for record in decode(raw):
        found = parse_end_txn_marker(record.key, record.value)
        return TransactionMarker(
            header.producer_id,
            header.producer_epoch,
            found.control_type is ControlType.COMMIT,
            found.coordinator_epoch,
            timestamp=record.timestamp,
        )
    return None


def only_batch(data: Buffer) -> LogBatchHeader:
    """Return the header of the one batch that a Produce request has for a partition.

    Raises:
        Malformed: CORRUPT_MESSAGE for a message format that does not exist;
            INVALID_RECORD for an incomplete batch, an older format, several batches.
    """
    if len(data) < BATCH_HEADER_SIZE:
        raise Malformed(ErrorCode.INVALID_RECORD, "shorter than a batch header")
    header = LogBatchHeader._make(_HEADER.unpack_from(data))
    # Kafka, too, answers otherwise for a format that does not exist than for one that
    # is too old.
    if header.magic > 2:
        raise Malformed(ErrorCode.CORRUPT_MESSAGE, f"message format {header.magic}")
    if header.magic != 2:
        raise Malformed(ErrorCode.INVALID_RECORD, f"message format {header.magic}")
    if not BATCH_HEADER_SIZE <= header.size <= len(data):
        raise Malformed(ErrorCode.INVALID_RECORD, f"a batch of {header.size} bytes")
    if header.size != len(data):
        raise Malformed(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
    return header


def check_sent(header: LogBatchHeader, data: Buffer, max_bytes: int) -> None:
    """Check a batch that a client sent.

    Raises:
        Refusal: INVALID_RECORD for what no client may send (a base offset, control
            records, counts that contradict each other), MESSAGE_TOO_LARGE,
            CORRUPT_MESSAGE.
    """
    # The leader sets offsets; a client that sets one has taken the batch from a log.
    if header.base_offset:
        raise Refusal(
            ErrorCode.INVALID_RECORD, f"the base offset is {header.base_offset}, not 0"
        )
    if header.size > max_bytes:
        raise Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{header.size} bytes are more than {max_bytes}",
        )
    try:
        # After the size, as in Kafka, and before the records are decompressed.
        check_batch(header, memoryview(data))
    except LogError as error:
        raise Refusal(error.error_code, str(error)) from error
    if header.attributes & CONTROL:
        raise Refusal(ErrorCode.INVALID_RECORD, "clients cannot write control records")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise Refusal(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records, but the last offset delta is"
            f" {header.last_offset_delta}",
        )


def keyless_records(data: Buffer) -> list[int]:
    """Positions in the batch of the records without a key.

    Raises:
        Refusal: CORRUPT_MESSAGE if the records cannot be read.
    """
    try:
        return [
            record.offset - batch.base_offset
            # The checksum was verified with the header.
            for batch in read_batches(data, check_crcs=False)
            for record in batch.decode("", 0)
            if record.key is None
        ]
    except (CorruptRecord, RecordTooLarge) as error:
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
