"""Writes records by a format: the language of rpk and kcl, or that of kcat.

A format is compiled once into a function from a record to bytes.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from binascii import hexlify
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Final, TypeAlias

from kafkaio._cli.records.decoded import ShownRecord
from kafkaio._cli.records.format import (
    FormatError,
    Headers,
    Literal,
    Number,
    Part,
    Text,
    escape,
    require,
    scan,
)
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import TimestampType

Renderer: TypeAlias = Callable[[ShownRecord], bytes]


class _Header(NamedTuple):
    """A header in the form of a record, for the parts in ``%h{...}``."""

    key: bytes
    value: bytes


def compile_format(layout: str) -> Renderer:
    """Compile a format of rpk's language.

    Raises:
        FormatError: the format is invalid, or has parts that only read.
    """
    parts = scan(layout)
    require(parts, layout, _only_read)
    return _joined([_compiled(part, layout) for part in parts])


def _only_read(part: Part) -> str:
    if isinstance(part, Text) and part.how == "re":
        return "{re[...]} reads input and writes nothing"
    if isinstance(part, Number) and part.kind.isdecimal():
        return f"a length of {{{part.kind}}} reads input and writes nothing"
    return ""


def _joined(pieces: Iterable[Callable[..., bytes]]) -> Callable[..., bytes]:
    # One piece needs no join; many formats are a single token.
    made = tuple(pieces)
    if len(made) == 1:
        return made[0]
    join = b"".join
    return lambda record: join([piece(record) for piece in made])


def _compiled(part: Part, layout: str) -> Callable[..., bytes]:
    if isinstance(part, Literal):
        data = part.data
        return lambda _: data
    if isinstance(part, Headers):
        inner = _joined([_compiled(each, layout) for each in part.parts])
        return lambda record: b"".join(
            [inner(_Header(n.encode(), v or b"")) for n, v in record.headers]
        )
    if isinstance(part, Number):
        write = _number(part.kind)
        read = _counter() if part.name == "i" else _READ_NUMBER[part.name]
        return lambda record: write(read(record))
    if part.name == "d":
        return partial(_date, part.argument)
    if part.name == "a":
        return _timestamp_type
    return _text(part, layout)


def _counter() -> Callable[[ShownRecord], int]:
    # The counter belongs to the compiled format, so it runs through all partitions.
    numbers = count(1)
    return lambda _: next(numbers)


# ---- numbers -----------------------------------------------------------------------

_READ_NUMBER: Final[dict[str, Callable[[ShownRecord], int]]] = {
    "T": lambda record: len(record.topic.encode()),
    "K": lambda record: len(record.key or b""),
    "V": lambda record: len(record.value or b""),
    "H": lambda record: len(record.headers),
    "p": attrgetter("partition"),
    "o": attrgetter("offset"),
    "e": attrgetter("leader_epoch"),
    "d": attrgetter("timestamp"),
}
_PACK: Final = {"64": "Q", "32": "I", "16": "H", "8": "B"}
_KIND: Final = re.compile(r"(ascii|hex|big|little|byte)(\d*)")


def _ascii(number: int) -> bytes:
    return b"%d" % number


def _number(kind: str) -> Callable[[int], bytes]:
    found = _KIND.fullmatch(kind)
    if found is None or found[1] == "ascii":
        return _ascii
    name, bits = found[1], found[2] or ("8" if kind == "byte" else "")
    if name == "hex":
        # The mask cuts a larger number, and shows a negative one in two's complement.
        mask = (1 << int(bits or 64)) - 1
        template = f"%0{int(bits) // 4}x".encode() if bits else b"%x"
        return lambda number: template % (number & mask)
    mask = (1 << int(bits)) - 1
    pack = struct.Struct(("<" if name == "little" else ">") + _PACK[bits]).pack
    return lambda number: pack(number & mask)


# ---- text --------------------------------------------------------------------------


_READ_TEXT: Final[dict[str, Callable[[ShownRecord], bytes]]] = {
    "t": lambda record: record.topic.encode(),
    "k": lambda record: record.key or b"",
    "v": lambda record: record.value or b"",
}
_ENCODE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "hex": hexlify,
    "base64": b64encode,
    "base64raw": lambda data: b64encode(data).rstrip(b"="),
}


def _text(part: Text, layout: str) -> Callable[[ShownRecord], bytes]:
    read = _READ_TEXT[part.name]
    if not part.how:
        return read
    encode = _unpack(part, layout) if part.how == "unpack" else _ENCODE[part.how]
    return lambda record: encode(read(record))


def _date(layout: str, record: ShownRecord) -> bytes:
    if record.timestamp < 0:
        return b"-1"  # the record has no timestamp
    time = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    return time.strftime(layout).encode()


#: The names of Java's TimestampType.
_TIMESTAMP_TYPES: Final = {
    TimestampType.NONE: b"NoTimestampType",
    TimestampType.CREATE: b"CreateTime",
    TimestampType.LOG_APPEND: b"LogAppendTime",
}


def _timestamp_type(record: ShownRecord) -> bytes:
    return _TIMESTAMP_TYPES[record.timestamp_type]


#: The letters of `struct` for integers.
_UNPACKED: Final = frozenset("bBhHiIqQ")


def _unpack(part: Text, layout: str) -> Callable[[bytes], bytes]:
    """Compile the argument of ``unpack``, whose letters are similar to `struct`'s."""
    steps: list[str | struct.Struct] = []
    order = ">"
    for letter in part.argument:
        if letter in "<>":
            order = letter
        elif letter in _UNPACKED:
            steps.append(struct.Struct(order + letter))
        elif letter in "xcs.$":
            steps.append(letter)
        else:
            reason = f"unpack does not know {letter!r}"
            place = layout.index(part.argument, part.position)
            raise FormatError(reason, layout, place + part.argument.index(letter))
    return partial(_unpacked, tuple(steps))


def _unpacked(steps: tuple[str | struct.Struct, ...], data: bytes) -> bytes:
    found: list[bytes] = []
    at = 0
    for step in steps:
        size = step.size if isinstance(step, struct.Struct) else int(step in "c.")
        # One malformed record must not end the command, so the text has the error.
        if at + size > len(data):
            return b"".join(found) + b" (there are too few bytes to unpack)"
        if isinstance(step, struct.Struct):
            found.append(b"%d" % int(step.unpack_from(data, at)[0]))
        elif step == "x":
            found.append(b" ")
        elif step == "s":
            found.append(data[at:])
            size = len(data) - at
        elif step == "$" and at < len(data):
            return b"".join(found) + b" (%d bytes are left)" % (len(data) - at)
        else:
            found.append(data[at : at + size])
        at += size
    return b"".join(found)


# ---- kcat --------------------------------------------------------------------------


def compile_kcat_format(layout: str) -> Renderer:
    r"""Compile a format of kcat.

    ``%t %p %o`` are topic, partition, offset; ``%k %s`` key and value, ``%K %S`` their
    lengths (-1 for null), ``%R`` the length of the value as four bytes, big endian;
    ``%T`` the timestamp in milliseconds, ``%h`` the headers as ``name=value,...``;
    ``\n \r \t \\ \xNN`` as in C.

    Raises:
        FormatError: a token is unknown.
    """
    pieces: list[Renderer] = []
    literal = b""
    at = 0
    while at < len(layout):
        letter = layout[at]
        name = layout[at + 1 : at + 2]
        if letter == "\\":
            data, at = escape(layout, at)
            literal += data
        # "%%" is a percent sign; "%" at the end of the format is an unknown token.
        elif letter != "%" or name == "%":
            literal += letter.encode()
            at += 1 if letter != "%" else 2
        elif name not in _KCAT or not name:
            raise FormatError(f"unknown token %{name} of kcat", layout, at)
        else:
            pieces += [_same(literal), _KCAT[name]]
            literal = b""
            at += 2
    return _joined([*pieces, _same(literal)])


def _same(data: bytes) -> Renderer:
    return lambda _: data


def _kcat_headers(record: ShownRecord) -> bytes:
    return b",".join(
        [
            name.encode() + b"=" + (b"NULL" if value is None else value)
            for name, value in record.headers
        ]
    )


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


_KCAT: Final[dict[str, Renderer]] = {
    "t": _READ_TEXT["t"],
    "k": _READ_TEXT["k"],
    "s": _READ_TEXT["v"],
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "K": lambda record: b"%d" % _size(record.key),
    "S": lambda record: b"%d" % _size(record.value),
    "R": lambda record: struct.pack(">i", _size(record.value)),
    "T": lambda record: b"%d" % record.timestamp,
    "h": _kcat_headers,
}
