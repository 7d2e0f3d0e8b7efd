"""What both codecs and the batch reader share: sizes, types, small functions.

The compiled codec is loaded without its pure twin, so what it takes from Python stands
here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kafkaio.types import Header, TimestampType

if TYPE_CHECKING:
    from kafkaio._records._receipts import Delivery
    from kafkaio.types import RecordMetadata

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
    "MOST_BYTES",
    "ONE_RECORD",
    "TRANSACTIONAL",
    "BinaryColumn",
    "BinaryView",
    "BytesLike",
    "Columns",
    "HeaderColumns",
    "HeaderView",
    "Origin",
    "PlainRecord",
    "at_once",
    "encode_varint",
    "twin_of",
]

#: Bytes, wherever they are.
BytesLike: TypeAlias = bytes | bytearray | memoryview
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
#: What 32-bit offsets can count.
MOST_BYTES = 2**31 - 1
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


class BinaryColumn(NamedTuple):
    """Values of bytes, some of them perhaps null.

    Attributes:
        validity: a bit per value, the lowest of each byte first, 0 for null; None
            where no value is null.
        offsets: 32-bit integers, one more than there are values: where each begins.
        data: the values.
        null_count: how many are null.
    """

    validity: bytearray | None
    offsets: bytearray
    data: bytearray
    null_count: int


class HeaderColumns(NamedTuple):
    """The headers of records: those of all records one after the other.

    Attributes:
        offsets: 32-bit integers, one more than there are records: where each
            record's headers begin.
        names: names in UTF-8.
        values: values.
    """

    offsets: bytearray
    names: BinaryColumn
    values: BinaryColumn


class Columns(NamedTuple):
    """Records as columns.

    Attributes:
        length: records.
        offsets: 64-bit integers.
        timestamps: 64-bit integers, milliseconds since the Unix epoch.
        keys: keys.
        values: values.
        headers: headers, None where they were not asked for.
        timeless: records that have no timestamp, but -1.
    """

    length: int
    offsets: bytearray
    timestamps: bytearray
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None
    timeless: int


class BinaryView(NamedTuple):
    """A column of bytes that somebody else keeps, such as an Arrow array.

    Attributes:
        validity: as in `BinaryColumn`.
        offsets: integers of ``width`` bytes.
        data: the values.
        first: index of the column's first value in these buffers.
        width: 4 or 8.
    """

    validity: BytesLike | None
    offsets: BytesLike
    data: BytesLike
    first: int = 0
    width: int = 4


class HeaderView(NamedTuple):
    """A column of headers that somebody else keeps: those of all rows, in a row.

    Attributes:
        ends: 64-bit integers: how many headers there are up to the end of each row.
        names: names in UTF-8, none of them null.
        values: values; None where all are null.
    """

    ends: BytesLike
    names: BinaryView
    values: BinaryView | None


def encode_varint(number: int) -> bytes:
    """The number as a zigzag varint."""
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    encoded = bytearray()
    while raw > 127:
        encoded.append(raw & 127 | 128)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


def at_once(delivery: Delivery) -> Generator[object, None, RecordMetadata]:
    """What ``await`` runs for a delivery that is done: it ends with the outcome."""
    yield from ()  # nothing to wait for, but awaiting takes an iterator
    return delivery.result()


def twin_of(error: Exception) -> Exception:
    """A copy of the error that the records of a batch share.

    Raised in several tasks, one object would collect all their tracebacks, and keep
    what these refer to: the deliveries too, which no garbage collector looks into.
    """
    try:
        twin = type(error).__new__(type(error), *error.args)
    except Exception:  # noqa: BLE001 - an exception class of the user's own making
        return error.with_traceback(None)
    twin.args = error.args
    vars(twin).update(vars(error))
    if error.__cause__ is not None:
        twin.__cause__ = error.__cause__
    return twin
