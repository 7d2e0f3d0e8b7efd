"""Protobuf schemas of a registry as descriptors.

Clients for Python register the serialized descriptor of a file, in base64; those for
Java its text. Text is read by `kafkaio.registry._proto_text`; protobuf itself checks
what comes of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kafkaio.registry._proto_text import InvalidProto, put_number, read

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

#: The file that a schema is; what it imports has the names of the references.
_NAME: Final = "default"
_BUILTIN: Final = "google/protobuf/"
_MESSAGE: Final = 11
_ENUM: Final = 14


def parse_file(text: str, references: Mapping[str, str]) -> FileDescriptorProto:
    """Return the descriptor of a schema, with the full names of types.

    Args:
        text: the text of a file, or its descriptor in base64.
        references: the same of those that it imports, by name.

    Raises:
        InvalidProto: it is not a schema.
        ImportError: protobuf is not installed; it comes with ``kafkaio[registry]``.
    """
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    known: dict[str, FileDescriptorProto] = {}
    for name, other in references.items():
        _add(pool, _load(other, name, known), known)
    file = _load(text, _NAME, known)
    _add(pool, file, known)
    return file


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
        raise InvalidProto(" ".join(str(error).split())) from error
    known[file.name] = file


def _builtin(name: str) -> FileDescriptorProto:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    module = name.removesuffix(".proto").replace("/", ".")
    try:
        descriptor = import_module(f"{module}_pb2").DESCRIPTOR
    except ImportError:
        raise InvalidProto(f"{name} does not exist") from None
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
    for place, message in messages_at(prefix, file.message_type):
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
        yield f"{prefix}.{message.name}", _MESSAGE
        yield from _types(f"{prefix}.{message.name}", message)


def messages_at(
    prefix: str, messages: Iterable[DescriptorProto]
) -> Iterator[tuple[str, DescriptorProto]]:
    """Return all messages, also those in others, with their full names.

    Args:
        prefix: what the names begin with; empty, or a point and a package.
        messages: the messages of a file.
    """
    for message in messages:
        place = f"{prefix}.{message.name}"
        yield place, message
        yield from messages_at(place, message.nested_type)


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
    raise InvalidProto(f'"{name}" is not defined')
