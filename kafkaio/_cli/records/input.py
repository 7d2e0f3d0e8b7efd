"""Reads records from bytes by a format: the input of ``kafkaio produce``.

A format is compiled once into steps. Each step takes bytes from a buffer. If a step
needs more bytes than the buffer has, the record is read again from its beginning when
the next piece of input arrives.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kafkaio._cli.records.format import (
    FormatError,
    Headers,
    Literal,
    Number,
    Part,
    Text,
    require,
    scan,
)


class InputError(ValueError):
    """The input does not match the format; the message has the place and the reason."""


@dataclass(slots=True)
class InputRecord:
    """A record that was read from input.

    Attributes:
        topic: the topic, None if the input has none.
        partition: the partition, None if the input has none.
        key: the key; None if it is empty or the input has none.
        value: the value.
        headers: pairs of name and value.
        timestamp: milliseconds since the epoch, None if the input has none.
        line: the line of the input in which it begins, from 1.
    """

    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    timestamp: int | None = None
    line: int = field(default=0, compare=False)


class InputReaderPort(Protocol):
    """Converts pieces of input to records."""

    def feed(self, data: bytes) -> Iterator[InputRecord]:
        """Yield the records that end in the input so far.

        Raises:
            InputError: the input does not match the format.
        """

    def finish(self) -> Iterator[InputRecord]:
        """Yield the last record, which may lack its last delimiter.

        Raises:
            InputError: the input ends within a record.
        """


class _NeedMore(Exception):
    """The input so far does not hold the whole record."""


class _InputState:
    """The buffer, the position in it, and the fields of the current record."""

    def __init__(self) -> None:
        self.data = b""
        self.position = 0
        # Whether no more input comes: then the last delimiter may be missing.
        self.is_end = False
        # Lengths by their token, for steps that come later in the format.
        self.sizes: dict[str, int] = {}
        self.fields: dict[str, bytes | int] = {}
        self.headers: list[tuple[str, bytes | None]] = []

    def take(self, size: int) -> bytes:
        """Take bytes from the buffer."""
        end = self.position + size
        if end > len(self.data):
            raise _NeedMore
        found = self.data[self.position : end]
        self.position = end
        return found


_Step = Callable[[_InputState], None]


class FormatReader:
    """Reads records by a format; implements `InputReaderPort`.

    Args:
        layout: the format, in the language of `kafkaio._cli.records.format`.

    Raises:
        FormatError: the format is invalid, or does not define where a record ends.
    """

    def __init__(self, layout: str) -> None:
        parts = scan(layout)
        require(parts, layout, _only_written)
        if not parts or all(isinstance(part, Literal) for part in parts):
            raise FormatError("the format reads nothing of a record", layout, 0)
        self._steps = _compiled(parts, layout)
        self._state = _InputState()
        # For messages: people look for a line, programs count records.
        self._records = 0
        self._lines = 1

    def feed(self, data: bytes) -> Iterator[InputRecord]:
        """Yield the records that end in the input so far; see `InputReaderPort`."""
        state = self._state
        state.data = state.data[state.position :] + data
        state.position = 0
        while state.position < len(state.data):
            start = state.position
            try:
                found = self._read()
            except _NeedMore:
                # The steps keep nothing: reading starts over, with more bytes.
                state.position = start
                return
            yield found

    def finish(self) -> Iterator[InputRecord]:
        """Yield the records that are left; see `InputReaderPort`."""
        state = self._state
        state.is_end = True
        yield from self.feed(b"")
        if state.position < len(state.data):
            left = len(state.data) - state.position
            raise self._error(f"the input ends within a record ({left} bytes of it)")

    def _read(self) -> InputRecord:
        state = self._state
        start = state.position
        state.sizes, state.fields, state.headers = {}, {}, []
        try:
            for step in self._steps:
                step(state)
        except InputError as error:
            raise self._error(str(error)) from None
        # An empty match of a pattern would repeat forever.
        if state.position == start:
            raise self._error("the format takes nothing of the input")
        found = _written(state)
        found.line = self._lines
        self._records += 1
        self._lines += state.data.count(b"\n", start, state.position)
        return found

    def _error(self, text: str) -> InputError:
        return InputError(f"line {self._lines}, record {self._records + 1}: {text}")


def _written(state: _InputState) -> InputRecord:
    # An empty key becomes None: a format cannot distinguish the two.
    fields = state.fields
    topic, key, value = fields.get("t"), fields.get("k"), fields.get("v")
    partition, timestamp = fields.get("p"), fields.get("d")
    return InputRecord(
        topic=topic.decode() if isinstance(topic, bytes) else None,
        partition=partition if isinstance(partition, int) else None,
        key=key or None if isinstance(key, bytes) else None,
        value=value if isinstance(value, bytes) else None,
        headers=state.headers,
        timestamp=timestamp if isinstance(timestamp, int) else None,
    )


# ---- steps -------------------------------------------------------------------------

_SIZE_OF: Final = {"t": "T", "k": "K", "v": "V"}


def _only_written(part: Part) -> str:
    if isinstance(part, Number) and part.kind == "hex":
        return "{hex} has no end in input: use {hex32}"
    if isinstance(part, Text) and part.how in ("unpack", "strftime"):
        return f"{part.how} writes records and reads nothing"
    if isinstance(part, Text) and part.name == "a":
        return "%a writes records and reads nothing"
    return ""


def _compiled(
    parts: Sequence[Part], layout: str, *, inner: bool = False
) -> list[_Step]:
    steps: list[_Step] = []
    seen: set[str] = set()
    # A literal after a text is its delimiter, which the step of the text consumes.
    skipped = False
    for index, part in enumerate(parts):
        if isinstance(part, Literal):
            if not skipped:
                steps.append(_exact(part.data))
            skipped = False
            continue
        _refuse_twice(part, seen, layout)
        if isinstance(part, Headers):
            steps.append(_headers(part, seen, layout))
        elif isinstance(part, Number):
            steps.append(_number(part))
        else:
            step, skipped = _text(part, seen, parts[index + 1 :], layout, inner=inner)
            steps.append(step)
        seen.add("h" if isinstance(part, Headers) else part.name)
    return steps


def _refuse_twice(part: Part, seen: set[str], layout: str) -> None:
    name = "h" if isinstance(part, Headers) else getattr(part, "name", "")
    if name in seen:
        raise FormatError(f"%{name} is in the format twice", layout, part.position)
    # A length that follows its text comes too late to find the text's end.
    if name in "TKV" and name.lower() in seen:
        reason = f"the length %{name} must come before %{name.lower()}"
        raise FormatError(reason, layout, part.position)


def _exact(data: bytes) -> _Step:
    def step(state: _InputState) -> None:
        there = state.data[state.position : state.position + len(data)]
        if there == data:
            state.position += len(data)
        # The end of the buffer may cut the literal.
        elif data.startswith(there):
            raise _NeedMore
        else:
            raise InputError(f"expected {data!r}, found {there!r}")

    return step


def _text(
    part: Text, seen: set[str], rest: Sequence[Part], layout: str, *, inner: bool
) -> tuple[_Step, bool]:
    """Return the step, and whether it takes the literal that follows."""
    following = rest[0] if rest else None
    is_last = len(rest) == 1 and not inner
    decode = _DECODE[part.how]
    name = part.name
    if (size_name := _SIZE_OF[name]) in seen:
        if part.how == "re":
            reason = "a length and a regular expression exclude each other"
            raise FormatError(reason, layout, part.position)
        return _sized(name, size_name, decode), False
    if part.how == "re":
        return _matched(name, _pattern(part, layout)), False
    if isinstance(following, Literal):
        return _delimited(name, following.data, decode, is_last=is_last), True
    if following is None and not inner:
        return _rest(name, decode), False
    reason = (
        f"the end of %{name} is not defined: put its length %{size_name} before it, or "
        "text after it"
    )
    raise FormatError(reason, layout, part.position)


def _sized(name: str, size_name: str, decode: Callable[[bytes], bytes]) -> _Step:
    def step(state: _InputState) -> None:
        state.fields[name] = decode(state.take(state.sizes[size_name]))

    return step


def _delimited(
    name: str, delimiter: bytes, decode: Callable[[bytes], bytes], *, is_last: bool
) -> _Step:
    def step(state: _InputState) -> None:
        start = state.position
        end = state.data.find(delimiter, start)
        if end >= 0:
            state.position = end + len(delimiter)
        elif state.is_end and is_last:  # the last line may lack its line break
            end = state.position = len(state.data)
        else:
            raise _NeedMore
        state.fields[name] = decode(state.data[start:end])

    return step


def _rest(name: str, decode: Callable[[bytes], bytes]) -> _Step:
    def step(state: _InputState) -> None:
        # Without a delimiter the text is all that is left: the input is one record.
        if not state.is_end:
            raise _NeedMore
        state.fields[name] = decode(state.take(len(state.data) - state.position))

    return step


def _matched(name: str, pattern: re.Pattern[bytes]) -> _Step:
    def step(state: _InputState) -> None:
        found = pattern.match(state.data, state.position)
        # A match up to the end of the buffer may be longer with more input.
        if not state.is_end and (found is None or found.end() == len(state.data)):
            raise _NeedMore
        if found is None:
            raise InputError(f"%{name} does not match {pattern.pattern!r}")
        state.fields[name] = found[0]
        state.position = found.end()

    return step


def _pattern(part: Text, layout: str) -> re.Pattern[bytes]:
    try:
        return re.compile(part.argument.encode())
    except re.error as error:
        raise FormatError(
            f"the regular expression is wrong: {error}", layout, part.position
        ) from None


def _from_hex(data: bytes) -> bytes:
    try:
        return bytes.fromhex(data.decode("ascii", "replace"))
    except ValueError:
        raise InputError(f"{data[:40]!r} is not hexadecimal") from None


def _from_base64(data: bytes) -> bytes:
    try:
        return b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except ValueError:
        raise InputError(f"{data[:40]!r} is not base64") from None


_DECODE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    "re": bytes,
    "hex": _from_hex,
    "base64": _from_base64,
    "base64raw": _from_base64,
}

# ---- numbers -----------------------------------------------------------------------

_DIGITS: Final = re.compile(rb"-?\d+")
_PACK: Final = {"64": "Q", "32": "I", "16": "H", "8": "B"}


def _number(part: Number) -> _Step:
    read = _read_number(part.kind)
    name = part.name
    if name in "TKVH":

        def size(state: _InputState) -> None:
            state.sizes[name] = found = read(state)
            if found < 0:
                raise InputError(f"the length %{name} is {found}")

        return size

    def step(state: _InputState) -> None:
        state.fields[name] = read(state)

    return step


def _read_number(kind: str) -> Callable[[_InputState], int]:
    if kind.isdecimal():
        number = int(kind)
        return lambda _: number
    if kind == "ascii":
        return _read_ascii
    if kind.startswith("hex"):
        width = int(kind[3:]) // 4
        return lambda state: _hexadecimal(state.take(width))
    bits = "8" if kind == "byte" else kind.removeprefix("little").removeprefix("big")
    packed = struct.Struct(("<" if kind.startswith("little") else ">") + _PACK[bits])
    return lambda state: int(packed.unpack(state.take(packed.size))[0])


def _read_ascii(state: _InputState) -> int:
    found = _DIGITS.match(state.data, state.position)
    # More digits may follow, and after a lone "-" there must be some.
    if not state.is_end and (
        found.end() == len(state.data)
        if found
        else state.data[state.position :] in (b"", b"-")
    ):
        raise _NeedMore
    if found is None:
        there = state.data[state.position : state.position + 20]
        raise InputError(f"expected a number, found {there!r}")
    state.position = found.end()
    return int(found[0])


def _hexadecimal(data: bytes) -> int:
    try:
        return int(data, 16)
    except ValueError:
        raise InputError(f"{data!r} is not hexadecimal") from None


# ---- headers -----------------------------------------------------------------------


def _headers(part: Headers, seen: set[str], layout: str) -> _Step:
    if "H" not in seen:
        reason = "%h needs the number of headers, %H, before it"
        raise FormatError(reason, layout, part.position)
    steps = _compiled(part.parts, layout, inner=True)

    def step(state: _InputState) -> None:
        # %k and %v mean the name and the value of a header here, so the fields of the
        # record are set aside.
        outer = state.fields, state.sizes
        for _ in range(state.sizes["H"]):
            state.fields, state.sizes = {}, {}
            for each in steps:
                each(state)
            state.headers.append(_header(state.fields))
        state.fields, state.sizes = outer

    return step


def _header(fields: dict[str, bytes | int]) -> tuple[str, bytes | None]:
    name, value = fields.get("k", b""), fields.get("v")
    assert isinstance(name, bytes)
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise InputError(f"the name of a header, {name!r}, is not UTF-8") from None
    return text, value if isinstance(value, bytes) else None
