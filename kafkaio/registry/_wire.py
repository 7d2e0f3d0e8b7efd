"""How a record names its schema: a prefix of the bytes, or a header.

======================  ==========================================================
form                    what there is
======================  ==========================================================
prefix                  0x00, the id as int32, for Protobuf the message indexes;
                        then the payload
header                  ``__value_schema_id`` or ``__key_schema_id``: 0x01, the GUID,
                        for Protobuf the message indexes; the payload is untouched
Apicurio, header        ``apicurio.value.contentId`` or ``apicurio.key.contentId``:
                        the id as int64; the payload is untouched
Apicurio, prefix        0x00, an id as int64: refused, see `parse_prefix`
AWS Glue                0x03, the compression, a UUID: refused
======================  ==========================================================

The message indexes lead from a file of Protobuf to a message in it: the place of the
message in the file, then in that message, and so on. They are a count and that many
numbers, as zigzag varints; the first message of a file is a single zero.

Nothing here knows a registry: these are functions of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import NoReturn
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.errors import SerializationError
from kafkaio.types import Header

#: A prefix: the magic byte, and the id.
PREFIX_BYTES = 5
#: A header: the magic byte, and the GUID.
GUID_BYTES = 17
#: Messages nest no deeper: Protobuf's own decoders stop at this depth.
MOST_INDEXES = 100

VALUE_HEADER = "__value_schema_id"
KEY_HEADER = "__key_schema_id"
#: What the names of Apicurio's headers begin with.
APICURIO_VALUE = "apicurio.value."
APICURIO_KEY = "apicurio.key."

_MAGIC_ID = 0
_MAGIC_GUID = 1
_MAGIC_GLUE = 3
_GLUE_BYTES = 18
_GLUE_COMPRESSIONS = (0, 5)
_APICURIO_BYTES = 9
#: An index is an int32.
_VARINT_BYTES = 5
_MOST_INDEX = 2**31 - 1
#: A GUID, and as many message indexes as there can be, and their count.
_MOST_HEADER = GUID_BYTES + (MOST_INDEXES + 1) * _VARINT_BYTES

_PREFIX = Struct(">BI")
_INT64 = Struct(">q")
_APICURIO_ENCODING = "encoding"
_APICURIO_CONTENT = "contentId"
_APICURIO_IDS = ("globalId", "artifactId")


@dataclass(slots=True, frozen=True)
class SchemaName:
    """How a record names its schema.

    Attributes:
        id: the id or the GUID of the schema.
        start: where the payload begins; in Protobuf's prefix form, the indexes.
        indexes: the message indexes as a header has them; None if the bytes have them.
    """

    id: int | UUID
    start: int
    indexes: bytes | None


def pack_prefix(schema_id: int) -> bytes:
    """Return the prefix that names a schema by its id."""
    return _PREFIX.pack(_MAGIC_ID, schema_id)


def pack_guid(guid: UUID) -> bytes:
    """Return the value of the header that names a schema by its GUID."""
    return bytes((_MAGIC_GUID,)) + guid.bytes


def header_name(*, is_key: bool) -> str:
    """Return the name of the header that names the schema of a key or a value."""
    return KEY_HEADER if is_key else VALUE_HEADER


def naming_header(headers: Iterable[Header], *, is_key: bool) -> SchemaName | None:
    """Return what the headers of a record say about its schema.

    Args:
        headers: the headers of the record. Of several with one name the last counts.
        is_key: whether it is about the key.

    Returns:
        the name; None if no header has one, and the prefix does.

    Raises:
        SerializationError: the header is malformed, or a form that cannot be read.
    """
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    prefix = APICURIO_KEY if is_key else APICURIO_VALUE
    found: bytes | None = None
    native: dict[str, bytes] | None = None
    for name, value in headers:
        if name == wanted:
            found = b"" if value is None else value
        elif name.startswith(prefix):
            native = {} if native is None else native
            native[name.removeprefix(prefix)] = b"" if value is None else value
    if found is not None:
        name_of = None if len(found) > _MOST_HEADER else _named(found)
        return name_of or _refuse_header(wanted, found)
    return None if native is None else _parse_apicurio(prefix, native)


@lru_cache(maxsize=1000)
def _named(value: bytes) -> SchemaName | None:
    """Return what a header says; None if it is malformed.

    Records of one schema have the same header, and to make a UUID takes a microsecond.
    """
    if len(value) >= GUID_BYTES and value[0] == _MAGIC_GUID:
        return SchemaName(UUID(bytes=value[1:GUID_BYTES]), 0, value[GUID_BYTES:])
    if len(value) >= PREFIX_BYTES and value[0] == _MAGIC_ID:
        return SchemaName(_PREFIX.unpack_from(value)[1], 0, value[PREFIX_BYTES:])
    return None


def _refuse_header(name: str, value: bytes) -> NoReturn:
    raise SerializationError(
        f"the header {name} must be 0x01 and a GUID of 16 bytes, and is "
        f"{_shown(value)} ({len(value)} bytes)"
    )


def _parse_apicurio(prefix: str, native: dict[str, bytes]) -> SchemaName | None:
    if native.get(_APICURIO_ENCODING, b"BINARY").upper() == b"JSON":
        raise SerializationError(
            f"the header {prefix}{_APICURIO_ENCODING} says that the payload is Avro's "
            "JSON, which is not read: set apicurio.registry.avro.encoding=BINARY "
            "where it is written"
        )
    content = native.get(_APICURIO_CONTENT)
    if content is not None:
        if len(content) != _INT64.size:
            raise SerializationError(
                f"the header {prefix}{_APICURIO_CONTENT} must be an int64, and has "
                f"{len(content)} bytes"
            )
        return SchemaName(_INT64.unpack(content)[0], 0, b"")
    if any(name in native for name in _APICURIO_IDS):
        raise SerializationError(
            f"the headers {prefix}* name the schema by Apicurio's global id or "
            "artifact, which its Confluent-compatible API does not know: set "
            "apicurio.registry.use-id=contentId where the record is written"
        )
    return None


def parse_prefix(data: bytes) -> SchemaName:
    """Return the name of the schema that stands in front of a payload.

    An id of zero followed by another int32 is Apicurio's native form: registries count
    from one. Its number is by default a global id, which the Confluent-compatible API
    does not know, so it is refused.

    Raises:
        SerializationError: the prefix is truncated, unknown, or a form that cannot be
            read.
    """
    if not data:
        raise SerializationError(
            "no bytes: the prefix that names the schema is missing"
        )
    magic = data[0]
    if magic != _MAGIC_ID:
        raise SerializationError(_explain_magic(data))
    if len(data) < PREFIX_BYTES:
        raise SerializationError(
            f"the prefix that names the schema is truncated: {len(data)} of "
            f"{PREFIX_BYTES} bytes"
        )
    schema_id: int = _PREFIX.unpack_from(data)[1]
    if schema_id == 0 and len(data) >= _APICURIO_BYTES:
        number = _INT64.unpack_from(data, 1)[0]
        raise SerializationError(
            f"the bytes begin with Apicurio's native form, the id {number} of 8 bytes, "
            "which its Confluent-compatible API may not know: set "
            "apicurio.registry.as-confluent=true and "
            "apicurio.registry.use-id=contentId where the record is written"
        )
    if not 0 < schema_id <= _MOST_INDEX:
        raise SerializationError(f"the prefix names the schema {schema_id}: no such id")
    return SchemaName(schema_id, PREFIX_BYTES, None)


def _explain_magic(data: bytes) -> str:
    magic = data[0]
    if (
        magic == _MAGIC_GLUE
        and len(data) >= _GLUE_BYTES
        and data[1] in _GLUE_COMPRESSIONS
    ):
        return (
            "the bytes were written for AWS Glue's schema registry (version "
            f"{UUID(bytes=data[2:_GLUE_BYTES])}), which is not read here: pass the "
            "deserializer of AWS's library as value_deserializer or key_deserializer"
        )
    text = f"unknown magic byte 0x{magic:02x}: the bytes do not name a schema"
    if data[:1] in (b"{", b"["):
        return f"{text}. They look like plain JSON, which kafkaio.serde.Json reads"
    return text


def pack_indexes(indexes: Sequence[int]) -> bytes:
    """Return message indexes as bytes; ``[0]`` is a single zero."""
    if list(indexes) == [0]:
        return b"\0"
    out = bytearray()
    for number in (len(indexes), *indexes):
        rest = number << 1
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def parse_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Read message indexes.

    Args:
        data: the bytes.
        start: where the indexes begin.

    Returns:
        the indexes, and where the payload begins.

    Raises:
        SerializationError: they are truncated, negative, or more than `MOST_INDEXES`.
    """
    count, place = _parse_number(data, start)
    if not 0 <= count <= MOST_INDEXES:
        raise SerializationError(
            f"a list of {count} message indexes; at most {MOST_INDEXES} make sense"
        )
    if count == 0:
        return (0,), place
    found = []
    for _ in range(count):
        index, place = _parse_number(data, place)
        if index < 0:
            raise SerializationError(f"the message index {index} is negative")
        found.append(index)
    return tuple(found), place


def _parse_number(data: bytes, place: int) -> tuple[int, int]:
    raw = 0
    for shift in range(0, 7 * _VARINT_BYTES, 7):
        if place >= len(data):
            raise SerializationError("the message indexes are truncated")
        byte = data[place]
        place += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw >> 1 ^ -(raw & 1), place
    raise SerializationError("a message index is longer than an int32")


def _shown(value: bytes) -> str:
    return f"0x{value[:4].hex()}..." if len(value) > 4 else f"0x{value.hex()}"
