"""What both codecs and the batch reader know of the wire: sizes, types, one context."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kafkaio.types import Header, TimestampType

__all__ = [
    "ATTRIBUTES_OFFSET",
    "BATCH_HEADER",
    "BATCH_HEADER_SIZE",
    "CODEC_MASK",
    "CONTROL",
    "CRC_OFFSET",
    "DELETE_HORIZON",
    "HEADER_OVERHEAD",
    "LENGTH_END",
    "LOG_APPEND_TIME",
    "MAGIC_OFFSET",
    "MIN_RECORD_SIZE",
    "ONE_RECORD",
    "TRANSACTIONAL",
    "Origin",
    "PlainRecord",
]

#: Bytes before the part of a batch that its length field counts.
LENGTH_END = 12
#: Position of the magic byte in every message format.
MAGIC_OFFSET = 16
#: Position of the checksum in a v2 batch, which covers all that follows it.
CRC_OFFSET = 17
#: Position of the attributes in a v2 batch.
ATTRIBUTES_OFFSET = 21
#: base offset, length, leader epoch, magic, crc, attributes, last offset delta,
#: base timestamp, max timestamp, producer id, producer epoch, base sequence, count.
BATCH_HEADER = ">qiibIhiqqqhii"
#: Size of the above.
BATCH_HEADER_SIZE = 61
#: Bits of a batch's attributes: the codec, who set the timestamps, whether the batch
#: is part of a transaction, whether it is a marker, and whether its base timestamp is
#: the time from which compaction may remove its tombstones.
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
#: An empty record: its length, attributes, two deltas, two lengths, header count.
MIN_RECORD_SIZE = 7
#: The most that a batch of one record takes beside key, value and headers: its header,
#: and those fields with both deltas 0.
ONE_RECORD = BATCH_HEADER_SIZE + 5 + 1 + 1 + 1 + 5 + 5 + 5
#: The most that a header takes beside the bytes of its name and value.
HEADER_OVERHEAD = 10
#: Timestamp, key, value and headers: a record without a place in a log.
PlainRecord: TypeAlias = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]


class Origin(NamedTuple):
    """What the records of one batch share, for the decoder to stamp on each.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        start_offset: records before it are left out.
        base_offset: what their offset deltas count from.
        last_offset_delta: the largest delta there may be.
        base_timestamp: what their timestamp deltas count from.
        log_append_time: the broker's timestamp, which replaces the producer's, or
            None where the producer's is valid.
        timestamp_type: who set the timestamps.
        leader_epoch: epoch of the leader that appended the batch.
    """

    topic: str
    partition: int
    start_offset: int
    base_offset: int
    last_offset_delta: int
    base_timestamp: int
    log_append_time: int | None
    timestamp_type: TimestampType
    leader_epoch: int
