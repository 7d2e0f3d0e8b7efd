"""Batch headers as a broker reads them before it appends."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kafkaio._records._layout import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CONTROL,
    TRANSACTIONAL,
)
from kafkaio._records.batch import read_batches
from kafkaio.errors import CorruptRecord
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Buffer
from kafkaio.testing.broker.producers import ProducerBatch
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.log import BatchHeader, read_header

__all__ = ["headers_of", "keyless_records", "only_batch", "producer_of"]

# Read without the checks of a log: a client's mistakes have codes of their own.
_HEADER: Final = struct.Struct(BATCH_HEADER)


def producer_of(header: BatchHeader) -> ProducerBatch | None:
    """What idempotence looks at in a batch; None without a producer id."""
    if header.producer_id < 0:
        return None
    return ProducerBatch(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )


def headers_of(data: Buffer) -> Iterator[BatchHeader]:
    """Yield the headers of whole batches that a log has checked before."""
    position = 0
    while position + BATCH_HEADER_SIZE <= len(data):
        header = read_header(data, position)
        yield header
        position += header.size


def only_batch(data: Buffer) -> BatchHeader:
    """Check the records of one partition of a Produce request; the log checks more.

    Raises:
        Refusal: CORRUPT_MESSAGE for what is cut off, INVALID_RECORD for what no client
            may send (several batches, markers, an older format, no records).
    """
    if len(data) < BATCH_HEADER_SIZE:
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, "no room for the header of a batch")
    header = BatchHeader._make(_HEADER.unpack_from(data))
    if header.magic != 2:
        raise Refusal(ErrorCode.INVALID_RECORD, f"message format {header.magic}")
    if header.size < BATCH_HEADER_SIZE or header.size > len(data):
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, f"a batch of {header.size} bytes")
    if header.size != len(data):
        raise Refusal(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
    if header.attributes & CONTROL:
        raise Refusal(ErrorCode.INVALID_RECORD, "clients may not write markers")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise Refusal(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records, but the last offset delta is"
            f" {header.last_offset_delta}",
        )
    if header.attributes & TRANSACTIONAL:
        raise Refusal(ErrorCode.INVALID_TXN_STATE, "no transaction was begun here")
    return header


def keyless_records(data: Buffer) -> list[int]:
    """Positions of the records without a key, which a compacted topic refuses.

    Raises:
        Refusal: CORRUPT_MESSAGE if the records cannot be read.
    """
    try:
        return [
            record.offset - batch.base_offset
            for batch in read_batches(data, check_crcs=False)
            for record in batch.decode("", 0)
            if record.key is None
        ]
    except CorruptRecord as error:
        raise Refusal(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
