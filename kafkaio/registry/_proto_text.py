"""The text of Protobuf files, read into descriptors and written from them.

It reads what files of records have: messages, enums, oneofs, maps, services, options
of the language. Groups, extensions and options of one's own are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
        MethodDescriptorProto,
        ServiceDescriptorProto,
    )
    from google.protobuf.message import Message


class InvalidProto(Exception):
    """A text is not a file of Protobuf; the message says why."""


_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<word>[A-Za-z_.][A-Za-z0-9_.]*)
      | (?P<number>[0-9][0-9A-Za-z.+]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
#: Numbers of the types in descriptors.
_SCALARS: Final[Mapping[str, int]] = {
    name: number
    for number, name in enumerate(
        (
            *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32"),
            *("bool", "string", "group", "message", "bytes", "uint32", "enum"),
            *("sfixed32", "sfixed64", "sint32", "sint64"),
        ),
        start=1,
    )
    if name not in {"group", "message", "enum"}
}
_SCALAR_NAMES: Final = {number: name for name, number in _SCALARS.items()}
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_LABEL_NAMES: Final = {number: name for name, number in _LABELS.items()}
_LARGEST: Final = 2**29
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


# ---- to descriptors ------------------------------------------------------------------


def read(text: str) -> FileDescriptorProto:
    """Read a file. The types that fields name are as they are written.

    Raises:
        InvalidProto: it is not a file of Protobuf, or has what is not understood.
    """
    try:
        return _Reader(text).file()
    except RecursionError:
        raise InvalidProto("it is nested too deeply") from None


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        from google.protobuf import descriptor_pb2

        self._pb = descriptor_pb2
        self._tokens = [
            (match.lastgroup, match.group())
            for match in _TOKEN.finditer(text)
            if match.lastgroup != "blank"
        ]
        self._position = 0
        self._syntax = "proto2"

    # ---- tokens ----------------------------------------------------------------------

    def _peek(self) -> str:
        at = self._position
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise InvalidProto("it ends too early")
        self._position += 1
        return token

    def _take(self, wanted: str) -> bool:
        """Take a token if it is the next one."""
        if self._peek() != wanted:
            return False
        self._position += 1
        return True

    def _expect(self, wanted: str) -> None:
        found = self._next()
        if found != wanted:
            raise InvalidProto(f"{found!r} stands where {wanted!r} has to be")

    def _word(self) -> str:
        kind = self._tokens[self._position][0] if self._peek() else None
        word = self._next()
        if kind != "word":
            raise InvalidProto(f"{word!r} is not a name")
        return word

    def _text(self) -> str:
        kind = self._tokens[self._position][0] if self._peek() else None
        token = self._next()
        if kind != "text":
            raise InvalidProto(f"{token!r} is not a string")
        return re.sub(
            r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL
        )

    def _integer(self) -> int:
        sign = -1 if self._take("-") else 1
        token = self._next()
        try:
            is_octal = len(token) > 1 and token.isdigit() and token.startswith("0")
            return sign * int(token, 8 if is_octal else 0)
        except ValueError:
            raise InvalidProto(f"{token!r} is not an integer") from None

    def _block(self, read: Callable[[str], None]) -> None:
        """Read statements between braces."""
        self._expect("{")
        while not self._take("}"):
            if not self._take(";"):
                read(self._word())

    # ---- statements ------------------------------------------------------------------

    def file(self) -> FileDescriptorProto:
        """Read the whole file."""
        file = self._pb.FileDescriptorProto()
        while self._peek():
            if not self._take(";"):
                self._statement(file, self._word())
        if self._syntax != "proto2":
            file.syntax = self._syntax
        return file

    def _statement(self, file: FileDescriptorProto, word: str) -> None:
        match word:
            case "syntax":
                self._expect("=")
                self._syntax = self._text()
                if self._syntax not in {"proto2", "proto3"}:
                    raise InvalidProto(f"syntax {self._syntax!r} is not understood")
                self._expect(";")
            case "package":
                file.package = self._word()
                self._expect(";")
            case "import":
                self._import(file)
            case "option":
                self._option(file.options)
            case "message":
                self._message(file.message_type.add())
            case "enum":
                self._enum(file.enum_type.add())
            case "service":
                self._service(file.service.add())
            case _:
                raise InvalidProto(f"{word!r} is not understood")

    def _import(self, file: FileDescriptorProto) -> None:
        number = len(file.dependency)
        if self._take("public"):
            file.public_dependency.append(number)
        elif self._take("weak"):
            file.weak_dependency.append(number)
        file.dependency.append(self._text())
        self._expect(";")

    def _option(self, options: Message) -> None:
        name = self._option_name()
        self._expect("=")
        self._set(options, name)
        self._expect(";")

    def _option_name(self) -> str:
        if self._peek() == "(":
            raise InvalidProto("options of one's own are not understood")
        return self._word()

    def _set(self, options: Message, name: str) -> None:
        """Read the value of an option of the language."""
        found = options.DESCRIPTOR.fields_by_name.get(name)
        if found is None or found.message_type is not None:
            raise InvalidProto(f"option {name!r} is not understood")
        if found.enum_type is not None:
            value = found.enum_type.values_by_name.get(self._word())
            if value is None:
                raise InvalidProto(f"option {name!r} has no such value")
            setattr(options, name, value.number)
        elif found.cpp_type == found.CPPTYPE_STRING:
            setattr(options, name, self._text())
        elif found.cpp_type == found.CPPTYPE_BOOL:
            setattr(options, name, self._word() == "true")
        else:
            setattr(options, name, self._integer())

    def _message(self, message: DescriptorProto) -> None:
        message.name = self._word()
        self._block(lambda word: self._member(message, word))
        self._hide_optionals(message)

    def _member(self, message: DescriptorProto, word: str) -> None:
        match word:
            case "message":
                self._message(message.nested_type.add())
            case "enum":
                self._enum(message.enum_type.add())
            case "oneof":
                self._oneof(message)
            case "option":
                self._option(message.options)
            case "reserved":
                self._reserved(message)
            case "map" if self._peek() == "<":
                self._map(message)
            case "extensions" | "extend" | "group":
                raise InvalidProto(f"{word!r} is not understood")
            case _:
                self._field(message, word)

    def _field(self, message: DescriptorProto, word: str) -> FieldDescriptorProto:
        field = message.field.add()
        field.label = self._pb.FieldDescriptorProto.LABEL_OPTIONAL
        if word in _LABELS:
            put_number(field, "label", _LABELS[word])
            if word == "optional" and self._syntax == "proto3":
                field.proto3_optional = True
            word = self._word()
        elif self._syntax == "proto2":
            raise InvalidProto(f"{word!r}: a field of proto2 needs a label")
        self._type(field, word)
        field.name = self._word()
        self._number(field)
        return field

    def _type(self, field: FieldDescriptorProto, word: str) -> None:
        if word in _SCALARS:
            put_number(field, "type", _SCALARS[word])
        else:
            field.type_name = word

    def _number(self, field: FieldDescriptorProto) -> None:
        """Read what comes behind the name of a field."""
        self._expect("=")
        field.number = self._integer()
        if not 0 < field.number < _LARGEST:
            raise InvalidProto(f"field {field.name} has a number that is not allowed")
        if self._take("["):
            self._field_options(field)
        self._expect(";")

    def _field_options(self, field: FieldDescriptorProto) -> None:
        while True:
            name = self._option_name()
            self._expect("=")
            if name == "default":
                is_text = self._tokens[self._position][0] == "text"
                sign = "-" if self._take("-") else ""
                field.default_value = self._text() if is_text else sign + self._next()
            elif name == "json_name":
                field.json_name = self._text()
            else:
                self._set(field.options, name)
            if not self._take(","):
                self._expect("]")
                return

    def _oneof(self, message: DescriptorProto) -> None:
        number = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=self._word())

        def member(word: str) -> None:
            if word == "option":
                self._option(oneof.options)
                return
            field = message.field.add(label=1, oneof_index=number)
            self._type(field, word)
            field.name = self._word()
            self._number(field)

        self._block(member)

    def _map(self, message: DescriptorProto) -> None:
        self._expect("<")
        key = self._word()
        self._expect(",")
        value = self._word()
        self._expect(">")
        name = self._word()
        entry = message.nested_type.add(name=f"{_camel(name)}Entry")
        entry.options.map_entry = True
        for number, part, word in ((1, "key", key), (2, "value", value)):
            field = entry.field.add(name=part, number=number, label=1)
            self._type(field, word)
        field = message.field.add(name=name, label=3, type_name=entry.name)
        self._number(field)

    def _reserved(self, message: DescriptorProto) -> None:
        while True:
            if self._tokens[self._position][0] == "text":
                message.reserved_name.append(self._text())
            else:
                start, end = self._range(_LARGEST - 1)
                message.reserved_range.add(start=start, end=end + 1)
            if not self._take(","):
                self._expect(";")
                return

    def _range(self, largest: int) -> tuple[int, int]:
        start = self._integer()
        if not self._take("to"):
            return start, start
        return start, largest if self._take("max") else self._integer()

    def _hide_optionals(self, message: DescriptorProto) -> None:
        """Put each optional field of proto3 into a oneof of its own, as protoc does."""
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self._word()

        def member(word: str) -> None:
            if word == "option":
                self._option(enum.options)
            elif word == "reserved":
                self._reserved_values(enum)
            else:
                self._expect("=")
                value = enum.value.add(name=word, number=self._integer())
                while self._take("[") or self._take(","):
                    name = self._option_name()
                    self._expect("=")
                    self._set(value.options, name)
                    self._take("]")
                self._expect(";")

        self._block(member)

    def _reserved_values(self, enum: EnumDescriptorProto) -> None:
        while True:
            if self._tokens[self._position][0] == "text":
                enum.reserved_name.append(self._text())
            else:
                start, end = self._range(2**31 - 1)
                enum.reserved_range.add(start=start, end=end)
            if not self._take(","):
                self._expect(";")
                return

    def _service(self, service: ServiceDescriptorProto) -> None:
        service.name = self._word()

        def member(word: str) -> None:
            if word == "option":
                self._option(service.options)
            elif word == "rpc":
                self._method(service.method.add())
            else:
                raise InvalidProto(f"{word!r} is not understood")

        self._block(member)

    def _method(self, method: MethodDescriptorProto) -> None:
        method.name = self._word()
        method.client_streaming, method.input_type = self._side()
        self._expect("returns")
        method.server_streaming, method.output_type = self._side()
        if self._peek() == "{":
            self._block(lambda word: self._option(method.options))
        else:
            self._expect(";")

    def _side(self) -> tuple[bool, str]:
        self._expect("(")
        is_stream = self._take("stream")
        name = self._word()
        self._expect(")")
        return is_stream, name


def put_number(message: Message, name: str, number: int) -> None:
    """Set a field that is an enum, whose type in the stubs is no int."""
    setattr(message, name, number)


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


# ---- to text -------------------------------------------------------------------------


def write(file: FileDescriptorProto) -> str:
    """Return the text of a file."""
    return "\n".join(_file(file)) + "\n"


def _file(file: FileDescriptorProto) -> Iterator[str]:
    syntax = file.syntax or "proto2"
    yield f'syntax = "{syntax}";'
    if file.package:
        yield f"package {file.package};"
    for number, name in enumerate(file.dependency):
        kind = "public " if number in file.public_dependency else ""
        yield f'import {kind}"{name}";'
    for option in _options(file.options):
        yield f"option {option};"
    for enum in file.enum_type:
        yield from _enum(enum)
    for message in file.message_type:
        yield from _message(message, syntax)
    for service in file.service:
        yield f"service {service.name} {{"
        for method in service.method:
            yield f"  {_method(method)}"
        yield "}"


def _method(method: MethodDescriptorProto) -> str:
    given = "stream " if method.client_streaming else ""
    back = "stream " if method.server_streaming else ""
    return (
        f"rpc {method.name} ({given}{method.input_type}) returns "
        f"({back}{method.output_type});"
    )


def _message(message: DescriptorProto, syntax: str) -> Iterator[str]:
    yield f"message {message.name} {{"
    yield from _indented(_members(message, syntax))
    yield "}"


def _members(message: DescriptorProto, syntax: str) -> Iterator[str]:
    for option in _options(message.options):
        yield f"option {option};"
    ranges = [_shown_range(each.start, each.end - 1) for each in message.reserved_range]
    names = [f'"{name}"' for name in message.reserved_name]
    for reserved in (ranges, names):
        if reserved:
            yield f"reserved {', '.join(reserved)};"
    entries = {
        nested.name: nested
        for nested in message.nested_type
        if nested.options.map_entry
    }
    written: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield _field(field, syntax, entries)
        elif field.oneof_index not in written:
            written.add(field.oneof_index)
            yield f"oneof {message.oneof_decl[field.oneof_index].name} {{"
            yield from _indented(
                _field(each, "oneof", entries)
                for each in message.field
                if each.HasField("oneof_index")
                and each.oneof_index == field.oneof_index
            )
            yield "}"
    for enum in message.enum_type:
        yield from _enum(enum)
    for nested in message.nested_type:
        if nested.name not in entries:
            yield from _message(nested, syntax)


def _field(
    field: FieldDescriptorProto, syntax: str, entries: dict[str, DescriptorProto]
) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = (_type(each) for each in entry.field)
        kind = f"map<{key}, {value}>"
    else:
        is_shown = syntax == "proto2" or field.proto3_optional or field.label == 3
        label = f"{_LABEL_NAMES[field.label]} " if is_shown else ""
        kind = f"{label if syntax != 'oneof' else ''}{_type(field)}"
    options = list(_options(field.options))
    if field.HasField("default_value"):
        default = field.default_value
        options.insert(
            0, f"default = {_quoted(default) if field.type == 9 else default}"
        )
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        options.append(f"json_name = {_quoted(field.json_name)}")
    shown = f" [{', '.join(options)}]" if options else ""
    return f"{kind} {field.name} = {field.number}{shown};"


def _type(field: FieldDescriptorProto) -> str:
    return field.type_name or _SCALAR_NAMES[field.type]


def _json_name(name: str) -> str:
    camel = _camel(name)
    return camel[:1].lower() + camel[1:] if not name.startswith("_") else camel


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for option in _options(enum.options):
        yield f"  option {option};"
    for each in enum.reserved_range:
        yield f"  reserved {_shown_range(each.start, each.end)};"
    for name in enum.reserved_name:
        yield f'  reserved "{name}";'
    for value in enum.value:
        options = ", ".join(_options(value.options))
        shown = f" [{options}]" if options else ""
        yield f"  {value.name} = {value.number}{shown};"
    yield "}"


def _shown_range(start: int, end: int) -> str:
    return str(start) if start == end else f"{start} to {end}"


def _options(options: Message) -> Iterator[str]:
    for found, value in options.ListFields():
        # Those of a message's type or repeated ones are not for people who read it.
        if found.name == "map_entry" or not isinstance(value, str | bool | int):
            continue
        if found.enum_type is not None and isinstance(value, int):
            shown = found.enum_type.values_by_number[value].name
        elif isinstance(value, str):
            shown = _quoted(value)
        elif isinstance(value, bool):
            shown = str(value).lower()
        else:
            shown = str(value)
        yield f"{found.name} = {shown}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
