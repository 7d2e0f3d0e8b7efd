"""Compile the decoder of one message class at one version.

The result is one function of straight-line Python: nested structs and arrays are
inlined, and a run of fixed-width fields is one ``struct`` call. Only a section of
tagged fields that is not empty takes another function.

A message may also be decoded in slices, by a generator that yields after every few
KiB and counts the memory of what it makes. Large answers take it: 5 bytes can become
an object of 100 bytes, so the memory and the time of one answer have to be bounded.

Two invariants keep hostile input harmless. A length is checked against the bytes that
remain before anything is allocated, and bytes that end too early raise IndexError or
``struct.error``, which the codec turns into ProtocolError.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import Struct as Packing, unpack_from
from typing import Final, NoReturn

from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import (
    Buffer,
    Field,
    Message,
    Response,
    Struct,
)
from kafkaio.protocol._primitives import (
    MAX_TAGS,
    read_string_length,
    read_uvarint,
    skip_tags,
)
from kafkaio.protocol._schema import EMPTY, FIXED, fields_of, minimum_size
from kafkaio.protocol._source import FunctionSource, default_source

#: Takes the buffer, the position and the buffer's end; returns the position after it.
Decoder = Callable[[Buffer, int, int], tuple[Message, int]]
#: Takes the same, and how many bytes of memory it may fill; yields between slices.
SlicedDecoder = Callable[
    [Buffer, int, int, int], Generator[None, None, tuple[Message, int]]
]

# Bytes of memory, as CPython on a 64-bit machine needs them: at least what is true, so
# that the sum is a bound.
_LIST: Final = 72
#: One entry of a list, which grows by an eighth at a time.
_ENTRY: Final = 9
_TEXT: Final = 64
_VIEW: Final = 200
_NUMBER: Final = 32
_UUID: Final = 112
#: The generator yields when it has read so many bytes; the densest take 5 ms.
_SLICE: Final = 8192
#: Numbers that one call of ``struct`` reads.
_RUN: Final = 2048
#: Arrays of fewer numbers take a compiled format; most are the replicas of a partition.
_SHORT: Final = 8


def compile_decoder(message: type[Message], version: int) -> Decoder:
    """Return the decoder of ``message`` at ``version``."""
    source = _DecoderSource(message, version)
    root = source.struct(message)
    text = "\n".join(
        [
            "def decode(buf, p, end):",
            source.body(),
            f"    return {root}, p",
        ]
    )
    # The text consists of names and numbers from our own schemas, never of input.
    exec(compile(text, f"<decoder {source.title}>", "exec"), source.names)  # noqa: S102
    decode = source.names["decode"]
    assert callable(decode)
    return decode


def compile_sliced_decoder(message: type[Message], version: int) -> SlicedDecoder:
    """Return the decoder of ``message`` at ``version`` that works in slices."""
    source = _SlicedSource(message, version)
    root = source.struct(message)
    text = "\n".join(
        [
            "def decode(buf, p, end, left):",
            "    mark = p + SLICE",
            "    if p > end: yield",  # makes it a generator in any case
            source.body(),
            f"    return {root}, p",
        ]
    )
    # As above.
    exec(compile(text, f"<sliced decoder {source.title}>", "exec"), source.names)  # noqa: S102
    decode = source.names["decode"]
    assert callable(decode)
    return decode


class _DecoderSource(FunctionSource):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self._is_answer = issubclass(message, Response)
        self._run: list[tuple[str, str]] = []
        self.names |= {
            "new": object.__new__,
            "read_uvarint": read_uvarint,
            "read_string_length": read_string_length,
            "skip_tags": skip_tags,
        }

    def flush(self) -> None:
        if not self._run:
            return
        # Fields of fixed size that follow one another are read by one call.
        run, self._run = self._run, []
        unpack, size = self.packing("".join(form for _, form in run), "unpack_from")
        targets = ", ".join(target for target, _ in run)
        self.line(f"{targets}, = {unpack}(buf, p)")
        self.line(f"p += {size}")
        self.read(run)
        for target, form in run:
            if form == FIXED["uuid"]:
                self.line(f"{target} = uuid_from({target})")

    def _footprint(self, kind: type[Struct]) -> int:
        """The memory of a struct, in bytes, without the values that are read."""
        size = kind.__basicsize__ + 16  # what the garbage collector adds
        for field in kind.SCHEMA:
            if field.default is None:
                continue
            if field.array:
                size += 0 if field.is_plain(self.version) else _LIST
            elif not isinstance(field.type, str):
                size += self._footprint(field.type)
        return size

    def read(self, run: list[tuple[str, str]]) -> None:
        """Note values of fixed size that were read: (variable, form) of each."""

    def charge(self, cost: str) -> None:
        """Note memory that the next line fills; an expression, in bytes."""

    def array_begins(self) -> None:
        """Note an array whose elements follow."""

    def element_ends(self) -> None:
        """Note an element of an array that was read."""

    def struct(self, kind: type[Struct]) -> str:
        """Add code that decodes a struct; return the variable that holds it."""
        name = self._empty(kind)
        plain, tagged, rest = fields_of(kind, self.version)
        for field in plain:
            self._field(field, f"{name}.{field.name}")
        for field in (*rest, *tagged):
            self._default(field, f"{name}.{field.name}")
        if self.flexible:
            self._tags(name, tagged)
        self.flush()
        return name

    def _empty(self, kind: type[Struct]) -> str:
        name = self.fresh("o")
        self.line(f"{name} = new({self.class_name(kind)})")
        return name

    def _default(self, field: Field, target: str) -> None:
        if isinstance(field.type, str) or field.array or field.default is None:
            self.line(f"{target} = {default_source(field)}")
            return
        name = self._empty(field.type)
        for part in field.type.SCHEMA:
            self._default(part, f"{name}.{part.name}")
        self.line(f"{target} = {name}")

    def _field(self, field: Field, target: str) -> None:
        if field.array:
            self._array(field, target)
        elif isinstance(field.type, str):
            self._primitive(field, target, nullable=field.is_nullable(self.version))
        else:
            self._struct_field(field, field.type, target)

    def _struct_field(self, field: Field, kind: type[Struct], target: str) -> None:
        if not field.is_nullable(self.version):
            self.line(f"{target} = {self.struct(kind)}")
            return
        mark = self.fresh("n")
        self._run.append((mark, "b"))
        self.line(f"if {mark} < {int(field.is_tagged(self.version))}:")
        self.indent()
        self.line(f"{target} = None")
        self.dedent()
        self.line("else:")
        self.indent()
        self.line(f"{target} = {self.struct(kind)}")
        self.dedent()

    def _primitive(self, field: Field, target: str, *, nullable: bool) -> None:
        assert isinstance(field.type, str)
        if field.type in FIXED:
            self._run.append((target, FIXED[field.type]))
            return
        length = self._length(field, is_string=field.type == "string")
        self._begin_value(field, target, length, nullable=nullable)
        stop = self.fresh("q")
        self.line(f"{stop} = p + {length}")
        self.line(f"if {stop} > end: bad_length('{field.name}', {length})")
        # An empty value and a text of one letter exist once.
        text = f"{length} > 1 and {_TEXT} + {length}"
        self.charge(str(_VIEW) if field.type == "records" else text)
        take = {
            "string": f"str(buf[p:{stop}], 'utf-8')",
            "bytes": f"bytes(buf[p:{stop}])",
            "records": f"memoryview(buf)[p:{stop}]",
        }
        self.line(f"{target} = {take[field.type]}")
        self.line(f"p = {stop}")
        self.dedent()

    def _length(self, field: Field, *, is_string: bool) -> str:
        """Add code that reads a length; null becomes a negative number."""
        name = self.fresh("n")
        if not self.compact(field):
            self._run.append((name, "h" if is_string else "i"))
            return name
        read = "read_string_length" if is_string else "read_uvarint"
        self.line(f"{name} = buf[p]")
        self.line(f"if {name} > 127: {name}, p = {read}(buf, p)")
        self.line("else: p += 1")
        self.line(f"{name} -= 1")
        return name

    def _begin_value(
        self, field: Field, target: str, length: str, *, nullable: bool
    ) -> None:
        """Add code that handles null, and open an else block for all other values.

        Some servers write null in an answer with an error where the schema has a
        value, librdkafka's mock cluster among them. That is the empty value: nothing
        else can be meant, and what follows is found all the same. In a request it is an
        error, as for Kafka.
        """
        self.line(f"if {length} < 0:")
        self.indent()
        if nullable:
            self.line(f"{target} = None")
        elif self._is_answer:
            self.line(f"if {length} < -1: bad_null('{field.name}')")
            empty = [] if field.array else EMPTY[str(field.type)]
            self.line(f"{target} = {empty!r}")
        else:
            self.line(f"bad_null('{field.name}')")
        self.dedent()
        self.line("else:")
        self.indent()

    def _array(self, field: Field, target: str) -> None:
        nullable = field.is_nullable(self.version)
        length = self._length(field, is_string=False)
        self._begin_value(field, target, length, nullable=nullable)
        # An array cannot have more elements than the rest of the bytes has room for: so
        # a forged length fills no memory.
        least = minimum_size(field, self.version, flexible=self.flexible)
        self.line(
            f"if {length} * {least} > end - p: bad_length('{field.name}', {length})"
        )
        if isinstance(field.type, str) and field.type in FIXED:
            self._fixed_array(field.type, target, length)
        else:
            self._loop(field, target, length)
        self.dedent()

    def _fixed_array(self, kind: str, target: str, length: str) -> None:
        if kind == "uuid":
            stop = self.fresh("q")
            self.charge(f"{_LIST} + {_ENTRY + _UUID} * {length}")
            self.array_begins()
            self.line(f"{stop} = p + 16 * {length}")
            self.line(
                f"{target} = [uuid_from(bytes(buf[i:i + 16]))"
                f" for i in range(p, {stop}, 16)]"
            )
            self.line(f"p = {stop}")
            return
        self._numbers(FIXED[kind], target, length)

    def _numbers(self, form: str, target: str, length: str) -> None:
        """Add code that reads an array of numbers, most of which are short."""
        self.names["unpack_from"] = unpack_from
        short = f"short_{form}" if form != "?" else "short_bool"
        if short not in self.names:
            self.names[short] = tuple(
                Packing(f">{count}{form}").unpack_from for count in range(_SHORT)
            )
        _, size = self.packing(form, "unpack_from")
        # Neither a test nor a call for the many that are empty.
        self.line(f"if not {length}: {target} = []")
        self.line("else:")
        self.indent()
        self.line(f"if {length} < {_SHORT}: {target} = [*{short}[{length}](buf, p)]")
        self.long_array(form, target, length, size)
        self.line(f"p += {size} * {length}")
        self.dedent()

    def long_array(self, form: str, target: str, length: str, size: int) -> None:
        """Add the branches for arrays of at least `_SHORT` numbers of ``size``."""
        del size
        self.line(f"else: {target} = [*unpack_from(f'>{{{length}}}{form}', buf, p)]")

    def _loop(self, field: Field, target: str, length: str) -> None:
        items = self.fresh("l")
        each = 0 if isinstance(field.type, str) else self._footprint(field.type)
        self.charge(f"{_LIST} + {_ENTRY + each} * {length}")
        self.line(f"{items} = {target} = []")
        # Most arrays are empty, and a loop over nothing costs more than a test.
        self.line(f"if {length}:")
        self.indent()
        self.array_begins()
        self.line(f"for _ in range({length}):")
        self.indent()
        if isinstance(field.type, str):
            item = self.fresh("v")
            self._primitive(field._replace(array=False), item, nullable=False)
        else:
            item = self.struct(field.type)
        self.line(f"{items}.append({item})")
        self.element_ends()
        self.dedent()
        self.dedent()

    def _tags(self, name: str, tagged: list[Field]) -> None:
        count = self.fresh("t")
        self.line(f"{count} = buf[p]")
        read = self._tag_reader(tagged) if tagged else None
        self.line(f"if not {count}: p += 1")
        if read is None:
            self.line("else: p = skip_tags(buf, p)")
        else:
            self.line(f"else: {self.call(read, name)}")

    def call(self, reader: str, name: str) -> str:
        """Return the statement that reads the tagged fields of ``name``."""
        return f"p = {reader}(buf, p, end, {name})"

    def reader(self, name: str, body: list[str]) -> list[str]:
        """Return the lines of the function that reads tagged fields by ``body``."""
        return [
            f"def {name}(buf, p, end, o):",
            "    count, p = read_uvarint(buf, p)",
            f"    if count > {MAX_TAGS}: bad_length('tags', count)",
            "    for _ in range(count):",
            "        tag, p = read_uvarint(buf, p)",
            "        size, p = read_uvarint(buf, p)",
            "        stop = p + size",
            "        if stop > end: bad_length(f'tag {tag}', size)",
            *body,
            "        p = stop",
            "    return p",
        ]

    def _tag_reader(self, tagged: list[Field]) -> str:
        """Compile a function beside the main one, for sections that are not empty."""
        reader = self.fresh("tags")
        lines = self.take_lines()
        depth, self._indent = self._indent, 2
        for field in tagged:
            self.line(f"if tag == {field.tag}:")
            self.indent()
            self._field(field, f"o.{field.name}")
            self.line(f"if p != stop: bad_length('tag {field.name}', size)")
            self.line("continue")
            self.dedent()
        body = self.take_lines()
        self._indent = depth
        self.put_lines(lines)
        self.aside(reader, self.reader(reader, body))
        return reader


class _SlicedSource(_DecoderSource):
    """The same code, with a meter.

    In the code, ``left`` is the memory left, and ``mark`` the position at which the
    generator yields next.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self.names |= {
            "SLICE": _SLICE,
            "too_large": _too_large,
            "read_numbers": _read_numbers,
            "unpack_from": unpack_from,
        }

    def read(self, run: list[tuple[str, str]]) -> None:
        # Small numbers exist once, all others are objects.
        large = [
            f"({target} >> 8 != 0)"
            for target, form in run
            if form in {"h", "H", "i", "q"} and "." in target
        ]
        if large:
            self.charge(f"{_NUMBER} * ({' + '.join(large)})")
        if any(form == FIXED["uuid"] for _, form in run):
            self.charge(str(_UUID))

    def charge(self, cost: str) -> None:
        self.line(f"left -= {cost}")

    def array_begins(self) -> None:
        self.line("if left < 0: too_large()")

    def element_ends(self) -> None:
        self.line("if p > mark:")
        self.indent()
        self.array_begins()
        self.line("mark = p + SLICE")
        self.line("yield")
        self.dedent()

    def _fixed_array(self, kind: str, target: str, length: str) -> None:
        if kind == "uuid":
            super()._fixed_array(kind, target, length)
            return
        self.charge(f"{_LIST} + {_ENTRY + _NUMBER} * {length}")
        self.array_begins()
        self._numbers(FIXED[kind], target, length)

    def long_array(self, form: str, target: str, length: str, size: int) -> None:
        self.line(f"elif {length} > {_RUN}:")
        self.line(
            f"    {target} = "
            f"yield from read_numbers(buf, p, {length}, '{form}', {size})"
        )
        super().long_array(form, target, length, size)

    def call(self, reader: str, name: str) -> str:
        return f"p, left = yield from {reader}(buf, p, end, {name}, left)"

    def reader(self, name: str, body: list[str]) -> list[str]:
        _, count, check, loop, *lines, _ = super().reader(name, body)
        return [
            f"def {name}(buf, p, end, o, left):",
            "    mark = p + SLICE",
            count,
            check,
            loop,
            "        if p > mark:",
            "            if left < 0: too_large()",
            "            mark = p + SLICE",
            "            yield",
            *lines,
            "    return p, left",
        ]


def _read_numbers(
    buf: Buffer, position: int, count: int, form: str, size: int
) -> Generator[None, None, list[int]]:
    """Read a long array of numbers, a run at a time."""
    numbers: list[int] = []
    while count:
        run = min(count, _RUN)
        numbers += unpack_from(f">{run}{form}", buf, position)
        position += run * size
        count -= run
        yield
    return numbers


def _too_large() -> NoReturn:
    raise ProtocolError(
        "it would take too much memory (see the option max_control_response_size)"
    )
