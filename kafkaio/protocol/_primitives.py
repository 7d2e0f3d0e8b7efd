"""The primitive types of the protocol as plain functions.

``read_*`` functions take a buffer and a position and return the value and the position
after it. They raise ProtocolError, or IndexError where the buffer ends too early:
``kafkaio.protocol._codec`` catches IndexError once per message, which is cheaper than a
check of every byte.

Sources: the protocol guide of Apache Kafka; KIP-482 for the compact types.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import pack
from uuid import UUID

from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Buffer, Buffers

#: The longest string in bytes of UTF-8, even where the format allows a longer one.
MAX_STRING = 0x7FFF
#: The most tagged fields in one section. Kafka's messages have less than ten; each
#: takes two bytes and half a microsecond, so megabytes of them would take seconds.
MAX_TAGS = 1000

_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def uvarint(value: int) -> bytes:
    """Encode an unsigned number of at most 32 bits, seven bits per byte, lowest first.

    Raises:
        ProtocolError: if the value is negative or has more than 32 bits.
    """
    if 0x7F < value <= 0x3FFF:  # the size of a small batch
        return bytes((value & 0x7F | 0x80, value >> 7))
    if not 0 <= value <= 0xFFFFFFFF:
        raise ProtocolError(f"{value} is not an unsigned 32-bit number")
    return _groups(value)


def varint(value: int) -> bytes:
    """Encode a signed 32-bit number: zigzag, then seven bits per byte.

    Raises:
        ProtocolError: if the value has more than 32 bits.
    """
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise ProtocolError(f"{value} is not a signed 32-bit number")
    return _groups((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """Encode a signed 64-bit number: zigzag, then seven bits per byte.

    Raises:
        ProtocolError: if the value has more than 64 bits.
    """
    if not -(1 << 63) <= value < 1 << 63:
        raise ProtocolError(f"{value} is not a signed 64-bit number")
    return _groups((value << 1) ^ (value >> 63))


def _groups(value: int) -> bytes:
    if value <= 0x7F:  # most lengths
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """Decode an unsigned number of at most 32 bits.

    Raises:
        ProtocolError: if it has more than 32 bits.
        IndexError: if the buffer ends inside it.
    """
    return _read_groups(data, position, 32)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Decode a signed 32-bit number; raises what ``read_uvarint`` raises."""
    raw, position = _read_groups(data, position, 32)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Decode a signed 64-bit number; raises what ``read_uvarint`` raises."""
    raw, position = _read_groups(data, position, 64)
    return (raw >> 1) ^ -(raw & 1), position


def _read_groups(data: Buffer, position: int, bits: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, bits, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value, position
    raise ProtocolError(f"a variable-length number has more than {bits} bits")


def read_string_length(data: Buffer, position: int) -> tuple[int, int]:
    """Decode the length field of a compact string: its length + 1, or 0 for null.

    Raises:
        ProtocolError: if the string would be longer than Kafka allows.
        IndexError: if the buffer ends inside the length field.
    """
    length, position = _read_groups(data, position, 32)
    if length > MAX_STRING + 1:
        raise ProtocolError(f"a string of {length - 1} bytes is too long")
    return length, position


def string_length(size: int) -> bytes:
    """Encode the length field of a compact string of ``size`` bytes.

    Raises:
        ProtocolError: if the string is longer than Kafka allows.
    """
    if size > MAX_STRING:
        raise ProtocolError(f"a string of {size} bytes is too long to send")
    return _groups(size + 1)


def compact_string(value: str | None) -> bytes:
    """Encode a compact string, as flexible versions have it; None is null."""
    if value is None:
        return b"\0"
    data = value.encode()
    return string_length(len(data)) + data


def nullable_string(value: str | None) -> bytes:
    """Encode a string with an int16 length; None is null.

    Raises:
        ProtocolError: if the string is longer than Kafka allows.
    """
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    if len(data) > MAX_STRING:
        raise ProtocolError(f"a string of {len(data)} bytes is too long to send")
    return pack(">h", len(data)) + data


def read_compact_string(data: Buffer, position: int) -> tuple[str | None, int]:
    """Decode a compact string; raises what ``read_string_length`` raises."""
    length, position = read_string_length(data, position)
    if length == 0:
        return None, position
    return _text(data, position, length - 1)


def read_nullable_string(data: Buffer, position: int) -> tuple[str | None, int]:
    """Decode a string with an int16 length; raises as ``read_compact_string`` does."""
    length = data[position] << 8 | data[position + 1]
    position += 2
    if length > MAX_STRING:  # negative as int16: Kafka's null
        return None, position
    return _text(data, position, length)


def _text(data: Buffer, position: int, size: int) -> tuple[str, int]:
    end = position + size
    if end > len(data):
        raise IndexError(f"a string of {size} bytes is cut off")
    try:
        return str(data[position:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a string is not UTF-8: {error.reason}") from error


def skip_tags(data: Buffer, position: int) -> int:
    """Return the position after a section of tagged fields that are all unknown.

    Raises:
        ProtocolError: if a field extends beyond the buffer.
        IndexError: if the buffer ends inside the section.
    """
    if not data[position]:  # the usual case
        return position + 1
    count, position = read_uvarint(data, position)
    if count > MAX_TAGS:
        raise ProtocolError(f"a message has {count} tagged fields")
    for _ in range(count):  # each consumes two bytes or raises: the loop ends
        _tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise ProtocolError(f"a tagged field of {size} bytes is cut off")
    return position


@lru_cache(maxsize=4096)
def uuid_from(data: bytes) -> UUID:
    """Return the UUID of 16 bytes; cached, because topic ids repeat."""
    return UUID(bytes=data)


def spread(records: Buffers) -> tuple[int, Sequence[Buffer]]:
    """Return the size of record data in bytes, and its buffers."""
    if isinstance(records, bytes | bytearray | memoryview):
        records = (records,)
    flat = tuple(
        part.cast("B") if isinstance(part, memoryview) else part for part in records
    )
    return sum(map(len, flat)), flat
