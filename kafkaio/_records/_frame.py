"""Makes a batch of a header and records: the pure twin."""

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


def frame_batch(
    writer: RecordWriter,
    body: bytes | None,
    attributes: int,
    leader_epoch: int,
    producer: tuple[int, int, int],
) -> bytes:
    """Return the batch of a writer's records, with header and checksum.

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
    # In two steps: joining header and body first would copy the body once more.
    checksum = crc32c(header[ATTRIBUTES_OFFSET:])
    _CRC.pack_into(header, CRC_OFFSET, crc32c(body, checksum))
    return b"".join((header, body))
