"""Makes the header of a batch: the pure twin."""

from __future__ import annotations

import struct

from kafkaio._records._crc import crc32c
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CRC_OFFSET,
    LENGTH_END,
)
from kafkaio._records._pure import RecordWriter

_HEADER = struct.Struct(BATCH_HEADER)
_CRC = struct.Struct(">I")


def batch_header(
    writer: RecordWriter,
    body: bytes | None,
    attributes: int,
    leader_epoch: int,
    producer: tuple[int, int, int],
) -> bytes:
    """Return the header before a writer's records, with the checksum of both.

    Args:
        writer: has one record at least.
        body: the compressed records; None to use those of the writer uncompressed.
        attributes: the batch's attributes, 16 bits.
        leader_epoch: epoch of the leader that appends it, -1 if unknown.
        producer: producer id, epoch and base sequence, -1 for none.
    """
    producer_id, producer_epoch, base_sequence = producer
    if body is None:
        body = writer.section()
    # The base offset and the checksum are 0 for now. The broker sets the offset; the
    # checksum does not cover it, nor the leader epoch.
    header = bytearray(
        _HEADER.pack(
            0,
            BATCH_HEADER_SIZE - LENGTH_END + len(body),
            leader_epoch,
            2,
            0,
            attributes,
            writer.count - 1,
            writer.first_timestamp,
            writer.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            writer.count,
        )
    )
    # In two steps: joining header and body first would copy the body.
    checksum = crc32c(header[ATTRIBUTES_OFFSET:])
    _CRC.pack_into(header, CRC_OFFSET, crc32c(body, checksum))
    return bytes(header)
