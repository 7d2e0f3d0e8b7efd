"""A leader admits produced batches: checks, offsets, leader epoch, times."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafkaio._records.batch import with_log_append_time
from kafkaio._records.compression import BytesLike, Decompressor
from kafkaio._records.view import RecordBatch
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.testing._log.config import LogConfig
from kafkaio.testing._log.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidBatchError,
    InvalidTimestampError,
)
from kafkaio.testing._log.header import LogBatchHeader, check_batch, read_header

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_OFFSET = 12


def split(data: BytesLike) -> Iterator[tuple[LogBatchHeader, memoryview]]:
    """Yield the batches in ``data``, each verified.

    Raises:
        CorruptBatchError: the next batch is incomplete or damaged.
    """
    view = memoryview(data)
    position = 0
    while position < len(view):
        header = read_header(view, position)
        raw = view[position : position + header.size]
        check_batch(header, raw)
        yield header, raw
        position += header.size


def admit(
    data: BytesLike, config: LogConfig, leader_epoch: int, now_ms: int
) -> list[tuple[LogBatchHeader, bytearray]]:
    """Check all batches in ``data``; set the leader epoch and the log append time.

    Raises:
        LogError: the first reason to refuse them; none of them must be appended.
    """
    admitted: list[tuple[LogBatchHeader, bytearray]] = []
    for header, raw in split(data):
        _check(header, raw, config, now_ms)
        own = raw
        if config.has_log_append_time:
            own = memoryview(with_log_append_time(raw, now_ms))
        # A copy: the caller's bytes are those of the request.
        stamped = bytearray(own)
        # The checksum begins behind this field, and stays valid.
        _LEADER_EPOCH.pack_into(stamped, _LEADER_EPOCH_OFFSET, leader_epoch)
        admitted.append((read_header(stamped), stamped))
    if not admitted:
        raise InvalidBatchError("the records hold no batch")
    return admitted


def place(
    header: LogBatchHeader, stamped: bytearray, base_offset: int
) -> tuple[LogBatchHeader, bytearray]:
    """Set the base offset of an admitted batch."""
    _BASE_OFFSET.pack_into(stamped, 0, base_offset)
    return header._replace(base_offset=base_offset), stamped


def _check(
    header: LogBatchHeader, raw: memoryview, config: LogConfig, now_ms: int
) -> None:
    if header.size > config.max_message_bytes:
        raise BatchTooLargeError(
            f"a batch has {header.size} bytes, the topic allows "
            f"{config.max_message_bytes}"
        )
    if not header.record_count or header.last_offset_delta != header.record_count - 1:
        raise CorruptBatchError(
            f"a batch has {header.record_count} records and the last offset delta "
            f"{header.last_offset_delta}"
        )
    if not config.has_log_append_time and not header.is_control:
        _check_timestamp(header.max_timestamp, config, now_ms)
    # Last, because it decompresses the batch.
    _check_records(raw, needs_keys=config.is_compacted and not header.is_control)


def _check_timestamp(timestamp: int, config: LogConfig, now_ms: int) -> None:
    if timestamp < 0:
        return
    if timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise InvalidTimestampError(f"the timestamp {timestamp} is after {now_ms}")
    if now_ms - timestamp > config.message_timestamp_before_max_ms:
        raise InvalidTimestampError(f"the timestamp {timestamp} is before {now_ms}")


def _check_records(raw: memoryview, *, needs_keys: bool) -> None:
    """Check the records; decode them into objects only if they need keys."""
    try:
        batch = RecordBatch(raw, Decompressor())
        if not needs_keys:
            batch.iterate("", 0)
        elif any(record.key is None for record in batch.decode("", 0)):
            raise InvalidBatchError("a record of a compacted topic needs a key")
    except (CorruptRecord, RecordTooLarge) as error:
        raise InvalidBatchError(str(error)) from None
