"""What a version of a message makes of its schema.

The interpreter and the compilers encode and decode the same fields, with the same
errors.
"""

from __future__ import annotations

from struct import calcsize
from typing import Final, NoReturn

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol._message import ZERO_UUID, Field, Struct

#: Primitives of one size, and how ``struct`` spells them.
FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
#: How many bytes each of them takes.
SIZES: Final = {kind: calcsize(f">{form}") for kind, form in FIXED.items()}
#: The value that null stands for where the schema of an answer has no null.
EMPTY: Final[dict[str, object]] = {"string": "", "bytes": b"", "records": b""}
#: Record data of fewer bytes is copied, which costs less than another buffer.
COPY_BELOW: Final = 4096

_ZEROS: Final[dict[str, object]] = {
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    **EMPTY,
}


def fields_of(
    kind: type[Struct], version: int
) -> tuple[list[Field], list[Field], list[Field]]:
    """Return the plain fields, the tagged ones in order of their tags, and the rest."""
    plain: list[Field] = []
    tagged: list[Field] = []
    rest: list[Field] = []
    for field in kind.SCHEMA:
        if field.is_tagged(version):
            tagged.append(field)
        else:
            (plain if field.present(version) else rest).append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    return plain, tagged, rest


def default_of(field: Field) -> object:
    """Return a new default of a field; not for a struct that is not null."""
    if field.default is None:
        return None
    if field.array:
        return []
    if field.default != ():
        return field.default
    assert isinstance(field.type, str)
    return _ZEROS.get(field.type, 0)


def minimum_size(field: Field, version: int, *, flexible: bool) -> int:
    """Return the least number of bytes of one element of an array field, at least 1.

    An element counts as at least one byte, although an empty struct takes none:
    otherwise a frame of a few bytes could announce any number of elements.
    """
    if isinstance(field.type, str):
        return _primitive_size(field.type, flexible=flexible)
    size = int(flexible)
    for part in field.type.SCHEMA:
        if part.present(version) and not part.is_tagged(version):
            size += _field_size(part, version, flexible=flexible)
    return max(1, size)


def _field_size(field: Field, version: int, *, flexible: bool) -> int:
    if field.array:
        return 1 if flexible else 4
    if not isinstance(field.type, str) and field.is_nullable(version):
        return 1
    return minimum_size(field, version, flexible=flexible)


def _primitive_size(kind: str, *, flexible: bool) -> int:
    if kind in SIZES:
        return SIZES[kind]
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def unsupported(title: str, field: str) -> NoReturn:
    """Refuse to encode a field that the version of a message does not have."""
    raise UnsupportedVersion(f"{title} cannot carry the field {field}")


def bad_length(field: str, length: int) -> NoReturn:
    """Refuse a length that the rest of the bytes has no room for."""
    raise ProtocolError(f"{field} has the impossible length {length}")


def bad_null(field: str) -> NoReturn:
    """Refuse null where the schema has a value."""
    raise ProtocolError(f"{field} is null")
