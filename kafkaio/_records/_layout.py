"""Sizes, types and small functions that both codecs and the batch readers share.

The compiled codec is loaded without its pure twin, so its Python parts are here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kafkaio._named_tuple import NamedTuple
from kafkaio.types import Header, TimestampType

if TYPE_CHECKING:
    from kafkaio.types import RecordMetadata

#: Any object that holds bytes.
BytesLike: TypeAlias = bytes | bytearray | memoryview
#: Bytes before the part of a batch that its length field counts.
LENGTH_END = 12
#: The least length of a message of format 0 or 1: checksum, magic byte, attributes, two
#: lengths.
MIN_LEGACY_LENGTH = 14
#: Position of the magic byte in every message format.
MAGIC_OFFSET = 16
#: Position of the checksum in a v2 batch; it covers everything after it.
CRC_OFFSET = 17
#: Position of the attributes in a v2 batch.
ATTRIBUTES_OFFSET = 21
#: base offset, length, leader epoch, magic, crc, attributes, last offset delta,
#: base timestamp, max timestamp, producer id, producer epoch, base sequence, count.
BATCH_HEADER = ">qiibIhiqqqhii"
#: Size of the above.
BATCH_HEADER_SIZE = 61
#: Bits of a batch's attributes: the codec, whether the broker set the timestamps,
#: whether the batch is part of a transaction, whether it holds control records, and
#: whether its base timestamp is the time from which compaction may remove tombstones.
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
#: Size of an empty record: length, attributes, two deltas, two lengths, header count.
MIN_RECORD_SIZE = 7
#: The most bytes of a batch of one record beside its key, value and headers: the
#: batch's header, and the fields above with both deltas 0.
ONE_RECORD = BATCH_HEADER_SIZE + 5 + 1 + 1 + 1 + 5 + 5 + 5
#: The most bytes of a header beside its name and value.
HEADER_OVERHEAD = 10
#: The most headers of a record. Each takes two bytes, and becomes objects of 100: a
#: compressed batch of some KiB could hold 30 million.
MAX_HEADERS = 1_000_000
#: The most bytes that 32-bit offsets can address.
MOST_BYTES = 2**31 - 1
#: Timestamp, key, value and headers: a record that has no offset yet.
PlainRecord: TypeAlias = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]


class Origin(NamedTuple):
    """The facts that the records of one batch share, for the decoder.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        start_offset: records before it are left out.
        base_offset: the offset that their offset deltas are added to.
        last_offset_delta: the largest offset delta allowed.
        base_timestamp: the timestamp that their timestamp deltas are added to.
        log_append_time: the broker's timestamp, which replaces those of the records;
            None if the records keep their own.
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
    """A column of values of bytes, some of which can be null.

    Attributes:
        validity: one bit per value, the lowest of each byte first, 0 for null; None
            if no value is null.
        offsets: 32-bit integers, one more than there are values: where each begins.
        data: the values, one after the other.
        null_count: the number of nulls.
    """

    validity: bytearray | None
    offsets: bytearray
    data: bytearray
    null_count: int


class HeaderColumns(NamedTuple):
    """A column of the headers of records: those of all records, one after the other.

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
    """Records as columns; a column that was not chosen is None.

    Attributes:
        length: number of records.
        offsets: 64-bit integers.
        timestamps: 64-bit integers, milliseconds since the Unix epoch.
        keys: the keys.
        values: the values.
        headers: the headers.
        timeless: number of records without a timestamp, which have -1; 0 if the
            timestamps were not asked for.
    """

    length: int
    offsets: bytearray | None
    timestamps: bytearray | None
    keys: BinaryColumn | None
    values: BinaryColumn | None
    headers: HeaderColumns | None
    timeless: int


class DecodedColumns(NamedTuple):
    """The columns to make of records; others are not copied.

    Attributes:
        offsets: whether to make the column of offsets.
        timestamps: likewise.
        keys: likewise.
        values: likewise.
        headers: likewise.
    """

    offsets: bool = True
    timestamps: bool = True
    keys: bool = True
    values: bool = True
    headers: bool = False


#: An offset that no record has: the end of a range that does not end.
NO_END = 2**63 - 1


class BinaryView(NamedTuple):
    """A column of bytes in buffers of another owner, such as an Arrow array.

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
    """A column of headers in buffers of another owner: those of all rows together.

    Attributes:
        ends: 64-bit integers: the number of headers up to the end of each row.
        names: names in UTF-8, none of them null.
        values: values; None if all are null.
    """

    ends: BytesLike
    names: BinaryView
    values: BinaryView | None


class Destinations(NamedTuple):
    """The destination of each row, in buffers of another owner.

    Attributes:
        topics: names of topics.
        numbers: 32-bit integers: for each row, the index of its topic among these; None
            if the rows have no topics of their own.
        partitions: 32-bit integers, -1 for a row without a partition of its own; None
            if no row has one.
    """

    topics: tuple[str, ...] = ()
    numbers: BytesLike | None = None
    partitions: BytesLike | None = None


def encode_varint(number: int) -> bytes:
    """Encode a number as a zigzag varint."""
    # Zigzag: 0, -1, 1, -2 become 0, 1, 2, 3, so that small negative numbers are short.
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    encoded = bytearray()
    while raw > 127:
        encoded.append(raw & 127 | 128)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


class _OutcomePort(Protocol):
    def result(self) -> RecordMetadata:
        """The outcome."""


def at_once(delivery: _OutcomePort) -> Generator[object, None, RecordMetadata]:
    """The iterator that ``await`` runs for a delivery whose outcome is known."""
    yield from ()  # nothing to wait for, but ``await`` needs a generator
    return delivery.result()


def twin_of(error: Exception) -> Exception:
    """Copy the error that the records of a batch share.

    One object that is raised in several tasks would collect all their tracebacks and
    keep alive what these refer to, such as deliveries, which the garbage collector
    does not track.
    """
    # Without `__init__`, whose parameters may differ from `args`.
    try:
        twin = type(error).__new__(type(error), *error.args)
    except Exception:  # noqa: BLE001 - any exception class of the user can come here
        return error.with_traceback(None)
    twin.args = error.args
    vars(twin).update(vars(error))
    if error.__cause__ is not None:
        twin.__cause__ = error.__cause__
    return twin
