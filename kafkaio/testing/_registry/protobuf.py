"""Protobuf schemas: read as text or as a descriptor, written as text, and compared.

Clients for Python register the serialized descriptor of a file, in base64; those for
Java its text. Confluent's registry takes both and gives back the text, or with
``format=serialized`` the descriptor.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkaio.registry._proto_descriptors import messages_at, parse_file
from kafkaio.registry._proto_text import InvalidProto, write
from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.parsed import Difference, ParsedSchemaPort

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )


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
    try:
        return ProtobufSchema(parse_file(text, references))
    except InvalidProto as error:
        raise InvalidSchema(str(error)) from error


# ---- compatibility -------------------------------------------------------------------


def _compare_files(
    reader: FileDescriptorProto, writer: FileDescriptorProto
) -> Iterator[Difference]:
    ours = dict(messages_at("", reader.message_type))
    for name, written in messages_at("", writer.message_type):
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
