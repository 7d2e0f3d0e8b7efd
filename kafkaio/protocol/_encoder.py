"""Compile the encoder of one message class at one version.

The result is one function of straight-line Python that appends to a bytearray. Record
data of ``COPY_BELOW`` bytes or more is not copied: it becomes a buffer of its own in
the list of parts, and a new bytearray continues after it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

from kafkaio.protocol._message import Buffer, Field, Message, Struct
from kafkaio.protocol._primitives import spread, string_length, uvarint
from kafkaio.protocol._schema import COPY_BELOW, FIXED, fields_of
from kafkaio.protocol._source import FunctionSource, differs

#: Takes the message, a bytearray with the bytes that precede it, and the list to which
#: it appends the finished buffers.
Encoder = Callable[[Message, bytearray, list[Buffer]], None]


def compile_encoder(message: type[Message], version: int) -> Encoder:
    """Return the encoder of ``message`` at ``version``."""
    source = _EncoderSource(message, version)
    source.struct(message, "m")
    text = "\n".join(
        [
            "def encode(m, out, parts):",
            source.body(),
            "    parts.append(out)",
        ]
    )
    # The text consists of names and numbers from our own schemas, never of input.
    exec(compile(text, f"<encoder {source.title}>", "exec"), source.names)  # noqa: S102
    encode = source.names["encode"]
    assert callable(encode)
    return encode


class _EncoderSource(FunctionSource):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self._run: list[tuple[str, str]] = []
        self.names |= {
            "pack": pack,
            "spread": spread,
            "string_length": string_length,
            "uvarint": uvarint,
        }

    def flush(self) -> None:
        if not self._run:
            return
        # Fields of fixed size that follow one another are written by one call.
        run, self._run = self._run, []
        packer, _ = self.packing("".join(form for _, form in run), "pack")
        self.line(f"out += {packer}({', '.join(value for value, _ in run)})")

    def struct(self, kind: type[Struct], name: str) -> None:
        """Add code that encodes the struct in the variable ``name``."""
        plain, tagged, rest = fields_of(kind, self.version)
        for field in rest:
            # A value that the version cannot carry is an error and not dropped, unless
            # Kafka's schema says that it may be.
            if not field.ignorable:
                test = differs(field, f"{name}.{field.name}")
                self.line(f"if {test}: unsupported({self._at(field)})")
        for field in plain:
            self._field(field, f"{name}.{field.name}")
        if self.flexible:
            self._tags(name, tagged)
        self.flush()

    def _field(self, field: Field, value: str) -> None:
        if isinstance(field.type, str) and field.type in FIXED and not field.array:
            self._fixed(field.type, value)
            return
        local = self.fresh("v")
        self.line(f"{local} = {value}")
        if not field.is_nullable(self.version):
            if field.nullable:
                self.line(f"if {local} is None: unsupported({self._at(field)})")
            self._value(field, local)
            return
        self.line(f"if {local} is None: {self._null(field)}")
        self.line("else:")
        self.indent()
        if not isinstance(field.type, str) and not field.array:
            self.line("out.append(1)")
        self._value(field, local)
        self.dedent()

    def _null(self, field: Field) -> str:
        if not isinstance(field.type, str) and not field.array:
            # A tagged struct is null if its first byte is 0, any other if it is -1.
            return f"out.append({0 if field.is_tagged(self.version) else 255})"
        if self.compact(field):
            return "out.append(0)"
        # The length -1, in the size that the type has for it.
        size = 2 if field.type == "string" and not field.array else 4
        return f"out += {bytes([255] * size)!r}"

    def _fixed(self, kind: str, value: str) -> None:
        self._run.append((f"{value}.bytes" if kind == "uuid" else value, FIXED[kind]))

    def _value(self, field: Field, local: str) -> None:
        """Add code that encodes a value that is not null and not of fixed size."""
        if field.array:
            self._array(field, local)
        elif field.type == "records":
            self._records(field, local)
        elif isinstance(field.type, str):
            self._text_or_bytes(field, local)
        else:
            self.struct(field.type, local)

    def _length(self, field: Field, size: str, *, is_string: bool) -> None:
        if not self.compact(field):
            self._run.append((size, "h" if is_string else "i"))
            return
        long = f"string_length({size})" if is_string else f"uvarint({size} + 1)"
        self.line(f"if {size} < 127: out.append({size} + 1)")
        self.line(f"else: out += {long}")

    def _text_or_bytes(self, field: Field, local: str) -> None:
        size = self.fresh("n")
        if field.type == "string":
            # The length is that of the bytes, not of the characters.
            self.line(f"{local} = {local}.encode()")
        self.line(f"{size} = len({local})")
        self._length(field, size, is_string=field.type == "string")
        self.line(f"out += {local}")

    def _records(self, field: Field, local: str) -> None:
        size = self.fresh("n")
        # By far the most frequent type: it is handled without a call.
        self.line(
            f"if type({local}) is bytes: {size} = len({local}); {local} = {local},"
        )
        self.line(f"else: {size}, {local} = spread({local})")
        self._length(field, size, is_string=False)
        self.line(f"if {size} < {COPY_BELOW}:")
        self.line(f"    for part in {local}: out += part")
        self.line("else:")
        self.line(f"    parts.append(out); parts.extend({local}); out = bytearray()")

    def _array(self, field: Field, local: str) -> None:
        size = self.fresh("n")
        self.line(f"{size} = len({local})")
        self._length(field, size, is_string=False)
        fixed = isinstance(field.type, str) and FIXED.get(field.type)
        if fixed and field.type != "uuid":
            self.line(f"out += pack(f'>{{{size}}}{fixed}', *{local})")
            return
        item = self.fresh("e")
        self.line(f"for {item} in {local}:")
        self.indent()
        if field.type == "uuid":
            self.line(f"out += {item}.bytes")
        elif isinstance(field.type, str):
            self._text_or_bytes(field, item)
        else:
            self.struct(field.type, item)
        self.dedent()

    def _tags(self, name: str, tagged: list[Field]) -> None:
        if not tagged:
            self.line("out.append(0)")
            return
        tests = [differs(field, f"{name}.{field.name}") for field in tagged]
        writer = self._tag_writer(tagged)
        self.line(f"if {' or '.join(tests)}: out += {writer}({name})")
        self.line("else: out.append(0)")

    def _tag_writer(self, tagged: list[Field]) -> str:
        """Compile a function beside the main one, for sections that are not empty."""
        writer = self.fresh("tags")
        lines = self.take_lines()
        depth, self._indent = self._indent, 1
        for field in tagged:
            self.line(f"if {differs(field, f'm.{field.name}')}:")
            self.indent()
            self.line("out = bytearray()")
            self._field(field, f"m.{field.name}")
            self.line(f"whole += {uvarint(field.tag or 0)!r} + uvarint(len(out)) + out")
            self.line("count += 1")
            self.dedent()
        body = self.take_lines()
        self._indent = depth
        self.put_lines(lines)
        self.aside(
            writer,
            [
                f"def {writer}(m):",
                "    whole = bytearray()",
                "    count = 0",
                *body,
                "    return uvarint(count) + whole",
            ],
        )
        return writer

    def _at(self, field: Field) -> str:
        return f"'{self.title}', '{field.name}'"
