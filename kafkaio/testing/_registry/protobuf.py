"""Protobuf schemas: read as text or as a descriptor, written as text, and compared.

Clients for Python register the serialized descriptor of a file, in base64; those for
Java its text. Confluent's registry takes both and gives back the text, or with
``format=serialized`` the descriptor.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.parsed import Difference, ParsedSchemaPort
from kafkaio.testing._registry.proto_text import put_number, read, write

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )


#: The file that a schema is; what it imports has the names of the references.
_NAME: Final = "default"
_BUILTIN: Final = "google/protobuf/"
_REQUIRED: Final = 2
_REPEATED: Final = 3
_MESSAGES: Final = frozenset((10, 11))
_ENUM: Final = 14
_TEXTS: Final = frozenset((9, 12))
#: Numbers of types whose values are written in the same way.
_ALIKE: Final = (
    frozenset((3, 4, 5, 8, 13, _ENUM)),  # int64, uint64, int32, bool, uint32, enum
    frozenset((17, 18)),  # sint32, sint64
    frozenset((7, 15)),  # fixed32, sfixed32
    frozenset((6, 16)),  # fixed64, sfixed64
    _TEXTS,  # string, bytes
)


@dataclass(slots=True, eq=False)
class ProtobufSchema:
    """A file of messages."""

    file: FileDescriptorProto

    def text(self, *, is_normal: bool) -> str:
        """Return the file as text; there is one way to write it."""
        del is_normal
        return write(self.file)

    def serialized(self) -> str:
        """Return the descriptor in base64."""
        return base64.b64encode(self.file.SerializeToString()).decode()

    def differences(self, writer: ParsedSchemaPort) -> list[Difference]:
        """Return why it cannot read what another schema wrote."""
        assert isinstance(writer, ProtobufSchema)
        return list(_compare_files(self.file, writer.file))


def parse(text: str, references: Mapping[str, str]) -> ProtobufSchema:
    """Parse a schema.

    Args:
        text: the text of a file, or its descriptor in base64.
        references: the same of those that it imports, by name.

    Raises:
        InvalidSchema: it is not a schema.
        ImportError: protobuf is not installed; it comes with ``kafkaio[registry]``.
    """
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    known: dict[str, FileDescriptorProto] = {}
    for name, other in references.items():
        _add(pool, _load(other, name, known), known)
    file = _load(text, _NAME, known)
    _add(pool, file, known)
    return ProtobufSchema(file)


def _add(
    pool: object, file: FileDescriptorProto, known: dict[str, FileDescriptorProto]
) -> None:
    """Have protobuf check a file, with what it imports."""
    for name in file.dependency:
        if name not in known and name.startswith(_BUILTIN):
            _add(pool, _builtin(name), known)
    if file.name in known:
        return
    try:
        pool.AddSerializedFile(file.SerializeToString())  # type: ignore[attr-defined]  # the stubs lack it
        pool.FindFileByName(file.name)  # type: ignore[attr-defined]
    # KeyError for what it refers to; TypeError says what is wrong with the file.
    except (KeyError, TypeError) as error:
        raise InvalidSchema(" ".join(str(error).split())) from error
    known[file.name] = file


def _builtin(name: str) -> FileDescriptorProto:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    module = name.removesuffix(".proto").replace("/", ".")
    try:
        descriptor = import_module(f"{module}_pb2").DESCRIPTOR
    except ImportError:
        raise InvalidSchema(f"{name} does not exist") from None
    file = FileDescriptorProto()
    descriptor.CopyToProto(file)
    return file


def _load(
    text: str, name: str, known: Mapping[str, FileDescriptorProto]
) -> FileDescriptorProto:
    file = _descriptor(text)
    if file is None:
        file = read(text)
        others = [
            known[each] if each in known else _builtin(each)
            for each in file.dependency
            if each in known or each.startswith(_BUILTIN)
        ]
        _resolve(file, others)
    file.name = name
    return file


def _descriptor(text: str) -> FileDescriptorProto | None:
    """Return the descriptor that a text is; None if it is none."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None


# ---- names ---------------------------------------------------------------------------


def _resolve(file: FileDescriptorProto, others: Iterable[FileDescriptorProto]) -> None:
    """Put the full name and the kind of each type that a field names."""
    types: dict[str, int] = {}
    for each in (file, *others):
        prefix = f".{each.package}" if each.package else ""
        types |= dict(_types(prefix, each))
    prefix = f".{file.package}" if file.package else ""
    for place, message in _messages_at(prefix, file.message_type):
        for field in message.field:
            _resolve_field(field, place, types)
    for service in file.service:
        for method in service.method:
            method.input_type = _find(method.input_type, prefix, types)
            method.output_type = _find(method.output_type, prefix, types)


def _types(
    prefix: str, holder: FileDescriptorProto | DescriptorProto
) -> Iterator[tuple[str, int]]:
    messages = (
        holder.message_type if hasattr(holder, "message_type") else holder.nested_type
    )
    for enum in holder.enum_type:
        yield f"{prefix}.{enum.name}", _ENUM
    for message in messages:
        yield f"{prefix}.{message.name}", 11
        yield from _types(f"{prefix}.{message.name}", message)


def _messages_at(
    prefix: str, messages: Iterable[DescriptorProto]
) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        place = f"{prefix}.{message.name}"
        yield place, message
        yield from _messages_at(place, message.nested_type)


def _resolve_field(
    field: FieldDescriptorProto, place: str, types: Mapping[str, int]
) -> None:
    if not field.type_name:
        return
    field.type_name = _find(field.type_name, place, types)
    put_number(field, "type", types[field.type_name])


def _find(name: str, place: str, types: Mapping[str, int]) -> str:
    """Return the full name that a name has at a place, innermost first."""
    if name.startswith("."):
        candidates = [name]
    else:
        parts = place.split(".")
        candidates = [
            ".".join([*parts[:end], name]) for end in range(len(parts), 0, -1)
        ]
    for candidate in candidates:
        if candidate in types:
            return candidate
    raise InvalidSchema(f'"{name}" is not defined')


# ---- compatibility -------------------------------------------------------------------


def _compare_files(
    reader: FileDescriptorProto, writer: FileDescriptorProto
) -> Iterator[Difference]:
    ours = dict(_messages_at("", reader.message_type))
    for name, written in _messages_at("", writer.message_type):
        if written.options.map_entry:
            continue
        wanted = ours.get(name)
        if wanted is None:
            yield _difference("MESSAGE_REMOVED", name)
            continue
        packages = (reader.package, writer.package)
        yield from _compare_messages(wanted, written, name, packages)


def _compare_messages(
    reader: DescriptorProto,
    writer: DescriptorProto,
    path: str,
    packages: tuple[str, str],
) -> Iterator[Difference]:
    written = {field.number: field for field in writer.field}
    wanted = {field.number: field for field in reader.field}
    for number, field in sorted(written.items()):
        place = f"{path}/{number}"
        if number in wanted:
            yield from _compare_fields(wanted[number], field, place, packages)
        elif field.label == _REQUIRED:
            yield _difference("REQUIRED_FIELD_REMOVED", place)
        elif _is_in_oneof(field) and _oneof(writer, field) in _oneofs(reader):
            yield _difference("ONEOF_FIELD_REMOVED", place)
    for number, field in sorted(wanted.items()):
        if field.label == _REQUIRED and number not in written:
            yield _difference("REQUIRED_FIELD_ADDED", f"{path}/{number}")
    yield from _compare_oneofs(reader, writer, path)


def _compare_fields(
    reader: FieldDescriptorProto,
    writer: FieldDescriptorProto,
    path: str,
    packages: tuple[str, str],
) -> Iterator[Difference]:
    if reader.type in _MESSAGES or writer.type in _MESSAGES:
        if reader.type not in _MESSAGES or writer.type not in _MESSAGES:
            yield _difference("FIELD_KIND_CHANGED", path)
        elif _local(reader, packages[0]) != _local(writer, packages[1]):
            yield _difference("FIELD_NAMED_TYPE_CHANGED", path)
    elif not _is_alike(reader.type, writer.type):
        yield _difference("FIELD_SCALAR_KIND_CHANGED", path)
    elif (reader.label == _REPEATED) != (writer.label == _REPEATED) and (
        reader.type not in _TEXTS
    ):
        yield _difference("FIELD_NUMERIC_LABEL_CHANGED", path)
    if (reader.label == _REQUIRED) and writer.label != _REQUIRED:
        yield _difference("REQUIRED_FIELD_ADDED", path)


def _compare_oneofs(
    reader: DescriptorProto, writer: DescriptorProto, path: str
) -> Iterator[Difference]:
    """Fields that exclude each other now may have been written together before."""
    written = {field.number: field for field in writer.field}
    old = _oneofs(writer)
    for name, numbers in _oneofs(reader).items():
        moved = [
            number
            for number in numbers
            if number in written and not _is_in_oneof(written[number])
        ]
        if moved and name in old:
            yield _difference("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{name}")
        elif len(moved) > 1:
            yield _difference("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{name}")


def _is_in_oneof(field: FieldDescriptorProto) -> bool:
    # A field that is `optional` in proto3 is alone in one, which no text shows.
    return field.HasField("oneof_index") and not field.proto3_optional


def _oneof(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    return str(message.oneof_decl[field.oneof_index].name)


def _oneofs(message: DescriptorProto) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for field in message.field:
        if _is_in_oneof(field):
            found.setdefault(_oneof(message, field), []).append(field.number)
    return found


def _local(field: FieldDescriptorProto, package: str) -> str:
    return str(field.type_name).removeprefix(f".{package}." if package else ".")


def _is_alike(reader: int, writer: int) -> bool:
    return reader == writer or any(
        reader in group and writer in group for group in _ALIKE
    )


def _difference(kind: str, path: str) -> Difference:
    return Difference(
        kind,
        f"The {{reader}} schema changes '{path.lstrip('.')}' of the {{writer}} schema",
    )
