"""Reads the message formats 0 and 1, which old segments of any broker can contain.

A message is a record or, if its attributes name a codec, a wrapper: its value is a
compressed set of messages. Format 0 has no timestamps, and the messages in a wrapper
have absolute offsets. In format 1 their offsets are relative to the wrapper's first
record, and the wrapper has the offset of its last one; so all of them must be read
before the first one's offset is known. These formats are never written.
"""

from __future__ import annotations

import struct
import zlib

from kafkaio._named_tuple import NamedTuple
from kafkaio._records._layout import (
    CODEC_MASK,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC_OFFSET,
    MIN_LEGACY_LENGTH,
    Origin,
    encode_varint,
)
from kafkaio._records.compression import DEFAULT_LIMIT, Compression, Decompressor
from kafkaio._records.sections import ReadableBatch, Section
from kafkaio.errors import CorruptRecord, RecordTooLarge
from kafkaio.types import TimestampType

_PREFIX = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_ATTRIBUTES_OFFSET = 17
_TIMESTAMP_OFFSET = 18
_BODY_OFFSETS = (18, 26)
_MAX_OFFSET = 2**63 - 1
_CODECS = {int(codec): codec for codec in Compression if codec is not Compression.ZSTD}


class _Message(NamedTuple):
    offset: int
    magic: int
    compression: Compression
    timestamp_type: TimestampType
    timestamp: int
    key: bytes | None
    value: bytes | None


class LegacyBatch(ReadableBatch):
    """One message of format 0 or 1, with the interface of a `RecordBatch`.

    Attributes that these formats lack are empty: it has neither a producer nor a leader
    epoch, and is neither transactional nor a control batch. ``base_offset`` and
    ``count`` of a compressed message decompress it, with the errors of `decode`.

    Args:
        data: the whole message, offset and length included.
        decompressor: decompresses a wrapper.
        max_decompressed: the most bytes that a wrapper may decompress to.

    Attributes:
        last_offset: offset of the last record.
        next_offset: the offset after the message.
        magic: number of the message format, 0 or 1.
        compression: the codec.
        timestamp_type: who set the timestamps.
        base_timestamp: the timestamp of the message, -1 in format 0.
        max_timestamp: the same.
        size_bytes: size of the message on the wire.

    Raises:
        CorruptRecord: a field has an impossible value, or the lengths do not agree.
    """

    __slots__ = (
        "_check_crcs",
        "_data",
        "_decompressor",
        "_max_decompressed",
        "_message",
        "_messages",
        "base_timestamp",
        "compression",
        "last_offset",
        "magic",
        "max_timestamp",
        "next_offset",
        "size_bytes",
        "timestamp_type",
    )

    leader_epoch = -1
    is_transactional = False
    is_control = False
    has_delete_horizon = False
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1

    def __init__(
        self,
        data: bytes,
        decompressor: Decompressor,
        max_decompressed: int = DEFAULT_LIMIT,
    ) -> None:
        message = _parse_message(data)
        if not 0 <= message.offset < _MAX_OFFSET:
            raise CorruptRecord(f"a message claims the offset {message.offset}")
        self._data = data
        self._decompressor = decompressor
        self._max_decompressed = max_decompressed
        self._message = message
        self._messages: list[_Message] | None = None
        self._check_crcs = False
        self.last_offset: int = message.offset
        self.next_offset: int = message.offset + 1
        self.magic: int = message.magic
        self.compression: Compression = message.compression
        self.timestamp_type: TimestampType = message.timestamp_type
        self.base_timestamp: int = message.timestamp
        self.max_timestamp: int = message.timestamp
        self.size_bytes: int = len(data)

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self._records()[0].offset

    @property
    def count(self) -> int:
        """Number of records in the message; 1 if they cannot be read."""
        try:
            return len(self._records())
        except (CorruptRecord, RecordTooLarge):
            # Reading the records raises the error.
            return 1

    @property
    def raw(self) -> bytes:
        """The bytes of the message, offset and length included."""
        return self._data

    def check_crc(self) -> None:
        """Verify the checksum, which covers everything from the magic byte on.

        The messages in a wrapper are verified, too, when they are decoded.

        Raises:
            CorruptRecord: the checksum is wrong.
        """
        _check_message_crc(self._data)
        # The messages in a wrapper have checksums of their own, for when they are
        # decoded.
        self._check_crcs = True

    def section(self, topic: str, partition: int, start_offset: int = 0) -> Section:
        """Return the records as bytes; every call encodes them in format 2.

        Raises:
            CorruptRecord: a wrapper cannot be decompressed or decoded.
        """
        messages = self._records()
        offsets = [message.offset for message in messages]
        base = min(offsets)
        # In format 2, which the compiled decoder reads: these formats are rare.
        data = b"".join(_as_format_2(message, base) for message in messages)
        origin = Origin(
            topic,
            partition,
            start_offset,
            base,
            max(offsets) - base,
            0,
            None,
            messages[0].timestamp_type,
            self.leader_epoch,
        )
        return Section(data, 0, len(messages), origin)

    def control_type(self) -> int | None:
        """Return None: these formats have no control batches."""
        return None

    def _records(self) -> list[_Message]:
        if self._messages is None:
            if self.compression is Compression.NONE:
                self._messages = [self._message]
            else:
                self._messages = self._unwrap()
        return self._messages

    def _unwrap(self) -> list[_Message]:
        wrapper = self._message
        value = wrapper.value
        if value is None:
            raise CorruptRecord(
                f"the compressed message at offset {wrapper.offset} has no value"
            )
        if wrapper.magic == 0 and wrapper.compression is Compression.LZ4:
            value = _fix_lz4_header(value)
        inner = _parse_messages(
            self._decompressor.decompress(
                wrapper.compression, value, self._max_decompressed
            ),
            check_crcs=self._check_crcs,
        )
        if not inner:
            raise CorruptRecord(
                f"the compressed message at offset {wrapper.offset} holds no record"
            )
        # Nothing writes such wrappers, and nested ones could decompress without end.
        if any(
            message.magic != wrapper.magic
            or message.compression is not Compression.NONE
            for message in inner
        ):
            raise CorruptRecord(
                f"the compressed message at offset {wrapper.offset} holds messages of "
                "another format, or compressed ones"
            )
        if wrapper.magic == 1:
            inner = _placed(wrapper, inner)
        return inner

    def __repr__(self) -> str:
        return (
            f"<LegacyBatch v{self.magic} to {self.last_offset} "
            f"{self.compression.name.lower()} | {self.size_bytes} bytes>"
        )


def _as_format_2(message: _Message, base_offset: int) -> bytes:
    body = b"".join(
        (
            b"\0",
            encode_varint(message.timestamp),
            encode_varint(message.offset - base_offset),
            _as_field(message.key),
            _as_field(message.value),
            b"\0",
        )
    )
    return encode_varint(len(body)) + body


def _as_field(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def _placed(wrapper: _Message, inner: list[_Message]) -> list[_Message]:
    # Old librdkafka left the wrapper's offset 0; the inner offsets are absolute then.
    base = wrapper.offset - inner[-1].offset if wrapper.offset else 0
    if wrapper.timestamp_type is TimestampType.LOG_APPEND:
        # The broker has set the timestamp of the wrapper only.
        inner = [
            message._replace(
                timestamp=wrapper.timestamp, timestamp_type=TimestampType.LOG_APPEND
            )
            for message in inner
        ]
    placed = [message._replace(offset=base + message.offset) for message in inner]
    if any(not 0 <= message.offset < _MAX_OFFSET for message in placed):
        raise CorruptRecord(
            f"the compressed message at offset {wrapper.offset} holds impossible "
            "offsets"
        )
    return placed


def _parse_messages(data: bytes, *, check_crcs: bool) -> list[_Message]:
    messages: list[_Message] = []
    position = 0
    while position < len(data):
        if len(data) - position < LENGTH_END + MIN_LEGACY_LENGTH:
            raise CorruptRecord("a compressed message set ends within a message")
        _, length = _PREFIX.unpack_from(data, position)
        end = position + LENGTH_END + length
        if length < MIN_LEGACY_LENGTH or end > len(data):
            raise CorruptRecord(f"a compressed message claims {length} bytes")
        raw = data[position:end]
        if check_crcs:
            _check_message_crc(raw)
        messages.append(_parse_message(raw))
        position = end
    return messages


def _parse_message(data: bytes) -> _Message:
    # `data` has at least the offset, the length and MIN_LEGACY_LENGTH bytes, which is
    # enough to read a timestamp.
    magic, attributes = data[MAGIC_OFFSET], data[_ATTRIBUTES_OFFSET]
    codec = _CODECS.get(attributes & CODEC_MASK)
    if magic > 1 or codec is None:
        raise CorruptRecord(
            f"a message has the magic byte {magic} and the attributes {attributes:#04x}"
        )
    timestamp, timestamp_type = -1, TimestampType.NONE
    if magic == 1:
        (timestamp,) = _INT64.unpack_from(data, _TIMESTAMP_OFFSET)
        timestamp_type = TimestampType(attributes & LOG_APPEND_TIME != 0)
    key, position = _parse_field(data, _BODY_OFFSETS[magic])
    value, position = _parse_field(data, position)
    if position != len(data):
        raise CorruptRecord(f"{len(data) - position} bytes follow a message's value")
    (offset,) = _INT64.unpack_from(data)
    return _Message(offset, magic, codec, timestamp_type, timestamp, key, value)


def _parse_field(data: bytes, position: int) -> tuple[bytes | None, int]:
    if position + 4 > len(data):
        raise CorruptRecord("a message ends before its value")
    (size,) = _INT32.unpack_from(data, position)
    position += 4
    if size == -1:
        return None, position
    if not 0 <= size <= len(data) - position:
        raise CorruptRecord(f"a key or value of a message claims {size} bytes")
    return data[position : position + size], position + size


def _check_message_crc(data: bytes) -> None:
    (expected,) = _CRC.unpack_from(data, LENGTH_END)
    actual = zlib.crc32(memoryview(data)[MAGIC_OFFSET:])
    if actual != expected:
        (offset,) = _INT64.unpack_from(data)
        raise CorruptRecord(
            f"the message at offset {offset} has the checksum {actual:#010x} but "
            f"says {expected:#010x}"
        )


def _fix_lz4_header(frame: bytes) -> bytes:
    # Kafka's first LZ4 writer included the frame's magic number in the checksum of the
    # frame descriptor, and format 0 kept that. Java ignores that byte in format 0; a
    # library that verifies it needs the right one.
    descriptor_start = 4
    if len(frame) <= descriptor_start:
        return frame
    flags = frame[descriptor_start]
    end = descriptor_start + 2 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if len(frame) <= end:
        return frame
    checksum = _xxh32_short(frame[descriptor_start:end]) >> 8 & 0xFF
    return b"".join((frame[:end], bytes((checksum,)), frame[end + 1 :]))


def _xxh32_short(data: bytes) -> int:
    # XXH32 with seed 0, for fewer than 16 bytes, which needs no accumulators.
    mask = 0xFFFFFFFF
    words = len(data) // 4
    digest = 374761393 + len(data)
    for (word,) in struct.iter_unpack("<I", data[: words * 4]):
        digest = digest + word * 3266489917 & mask
        digest = (digest << 17 | digest >> 15) * 668265263 & mask
    for byte in data[words * 4 :]:
        digest = digest + byte * 374761393 & mask
        digest = (digest << 11 | digest >> 21) * 2654435761 & mask
    digest = (digest ^ digest >> 15) * 2246822519 & mask
    digest = (digest ^ digest >> 13) * 3266489917 & mask
    return digest ^ digest >> 16
