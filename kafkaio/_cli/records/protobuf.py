"""Protobuf for the command line: messages of a schema, without generated classes.

Messages are JSON as Protobuf itself has it, but with the names of the schema: integers
of 64 bits are strings, bytes base64, a Timestamp ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._proto_descriptors import parse_file
from kafkaio.registry._proto_files import MessageTree, messages_of
from kafkaio.registry._proto_text import InvalidProto
from kafkaio.registry._wire import pack_indexes, parse_indexes

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from kafkaio.registry import Schema

_BUILTIN: Final = "google/protobuf/"
#: The name of a schema's own file; those that it imports have names of their own.
_FILE: Final = "schema.proto"
_GROUP: Final = re.compile(r"\b(?:optional|required|repeated)\s+group\b")
_FIELD: Final = re.compile(r'Failed to parse (\S+) field|field named "(\S+)"')


def message_reader(
    schema: Schema, references: Mapping[str, Schema], indexes: bytes | None
) -> Callable[[bytes, int], object]:
    """Return a function that reads bytes from a place on, as JSON shows them.

    Args:
        schema: the schema.
        references: the files that it imports, each after those that it needs.
        indexes: the message indexes; None if the bytes begin with them.

    Raises:
        SchemaError: the schema is not valid, or has what is not understood.
        ConfigurationError: protobuf is not installed.
    """
    file = _File(schema, references)
    # By the indexes; only those that lead to a message are kept.
    names: dict[Sequence[int], str] = {}

    def reader(data: bytes, start: int) -> object:
        if indexes is None:
            path, start = parse_indexes(data, start)
        else:
            path, _ = parse_indexes(indexes, 0)
        if path not in names:
            names[path] = file.name_at(path)
        message = file.message(names[path])
        try:
            message.ParseFromString(data[start:])
        except (file.decode_error, ValueError, RecursionError) as error:
            raise SerializationError(
                f"the bytes are not a message {message.DESCRIPTOR.full_name}: {error}"
            ) from error
        return file.tree_of(message)

    return reader


def message_writer(
    schema: Schema, references: Mapping[str, Schema], name: str | None
) -> Callable[[object], bytes]:
    """Return a function that writes what JSON read, behind the message indexes.

    Args:
        schema: as for `message_reader`.
        references: likewise.
        name: the message, with or without the package; None for the first one.

    Raises:
        SchemaError: likewise; or there is no such message.
        ConfigurationError: likewise.
    """
    file = _File(schema, references)
    name, path = file.named(name)
    prefix = pack_indexes(path)

    def writer(tree: object) -> bytes:
        message = file.message(name)
        file.fill(message, tree)
        # Every library of Protobuf has it, and no stub.
        missing: list[str] = getattr(message, "FindInitializationErrors")()  # noqa: B009
        if missing:
            raise SerializationError(f"{missing[0]} is missing", field=missing[0])
        data: bytes = message.SerializeToString()
        return prefix + data

    return writer


_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<word>[A-Za-z0-9_.]+)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPEN: Final = frozenset("{[")
_CLOSED: Final = frozenset("}]")


def _plain(text: str, references: Mapping[str, object]) -> str:
    """Return a file without what says nothing of how its messages are written.

    These are options of one's own, extensions, which declare such options, and imports
    of files that the registry does not have, which are for them, too.
    """
    if "{" not in text:
        return text  # a descriptor in base64
    tokens = [match.group() for match in _TOKEN.finditer(text)]
    kept: list[str] = []
    place = 0
    is_first = True
    while place < len(tokens):
        word = tokens[place]
        end = place + 1
        if word == "[" or (is_first and word in _DROPPED):
            end = _end_of(tokens, place)
        part = tokens[place:end]
        if end == place + 1 or not _is_foreign(part, references):
            kept += part
        if not word.isspace() and not word.startswith(("//", "/*")):
            is_first = tokens[end - 1] in {";", "{", "}"}
        place = end
    return "".join(kept)


_DROPPED: Final = frozenset(("option", "extend", "extensions", "import"))


def _end_of(tokens: Sequence[str], place: int) -> int:
    """Return the end of a statement, a block or brackets."""
    depth = 0
    for end in range(place, len(tokens)):
        word = tokens[end]
        depth += (word in _OPEN) - (word in _CLOSED)
        if depth <= 0 and (word in _CLOSED or word == ";"):
            return end + 1
    return len(tokens)


def _is_foreign(part: Sequence[str], references: Mapping[str, object]) -> bool:
    found = [each for each in part if not each.isspace()]
    if found[0] == "import":
        name = found[-2].strip("\"'") if len(found) > 2 else ""
        return name not in references and not name.startswith(_BUILTIN)
    return found[0] in {"extend", "extensions"} or "(" in found[:-1]


class _File:
    """The messages of a schema."""

    def __init__(self, schema: Schema, references: Mapping[str, Schema]) -> None:
        try:
            from google.protobuf import json_format
            from google.protobuf.descriptor_pool import DescriptorPool
            from google.protobuf.message import DecodeError
        except ImportError as error:
            raise ConfigurationError(
                "Protobuf needs protobuf; install it with: "
                "pip install 'kafkaio[registry]'"
            ) from error
        self.decode_error = DecodeError
        self._json: Any = json_format
        self._tree: MessageTree = messages_of(schema.text)
        self._pool: Any = DescriptorPool()
        texts: dict[str, str] = {}
        for name, each in references.items():
            texts[name] = _plain(each.text, references)
            self._add(name, texts[name], texts)
        self._package: str = self._add(_FILE, _plain(schema.text, references), texts)

    def _add(self, name: str, text: str, references: Mapping[str, str]) -> str:
        """Add a file to the pool; return its package."""
        others = {each: it for each, it in references.items() if each != name}
        try:
            file = parse_file(text, others)
        except InvalidProto as error:
            reason = "groups are not understood" if _GROUP.search(text) else error
            raise SchemaError("", f"the Protobuf cannot be read: {reason}") from error
        file.name = name
        for imported in file.dependency:
            if imported.startswith(_BUILTIN) and imported not in references:
                self._add_builtin(imported)
        self._pool.AddSerializedFile(file.SerializeToString())
        return str(file.package)

    def _add_builtin(self, name: str) -> None:
        module = name.removesuffix(".proto").replace("/", ".")
        file = import_module(f"{module}_pb2").DESCRIPTOR
        for each in file.dependencies:
            self._add_builtin(each.name)
        self._pool.AddSerializedFile(file.serialized_pb)

    def name_at(self, path: Sequence[int]) -> str:
        """Return the name of a message by its indexes."""
        names = sorted(self._tree.names(path))
        if not names:
            raise SerializationError(
                f"the message indexes {list(path)} lead to no message of the schema"
            )
        # The entries of maps count or not, by the language of the writer.
        own = (name for name in names if self._tree.indexes(name) == tuple(path))
        return next(own, names[0])

    def named(self, name: str | None) -> tuple[str, tuple[int, ...]]:
        """Return the name of a message without the package, and its indexes."""
        if name is None:
            return self.name_at((0,)), (0,)
        short = name.removeprefix(f"{self._package}.")
        path = self._tree.indexes(short)
        if path is None:
            raise SchemaError("", f"the schema has no message {name!r}")
        return short, path

    def message(self, name: str) -> Message:
        """Return an empty message."""
        from google.protobuf.message_factory import GetMessageClass

        full = f"{self._package}.{name}" if self._package else name
        made: Message = GetMessageClass(self._pool.FindMessageTypeByName(full))()
        return made

    def tree_of(self, message: Message) -> object:
        """Return what JSON shows of a message."""
        try:
            return self._json.MessageToDict(
                message,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
                descriptor_pool=self._pool,
            )
        except (TypeError, ValueError, RecursionError) as error:
            # An Any may hold a message of a file that is not here.
            raise SerializationError(f"no JSON of the message: {error}") from error

    def fill(self, message: Message, tree: object) -> None:
        """Set the fields of a message.

        Raises:
            SerializationError: what JSON read does not fit.
        """
        if not isinstance(tree, dict):
            raise SerializationError("the value must be an object")
        try:
            self._json.ParseDict(tree, message, descriptor_pool=self._pool)
        except (self._json.ParseError, TypeError, ValueError, RecursionError) as error:
            text = " ".join(str(error).split())
            found = _FIELD.search(text)
            field = (found[1] or found[2]) if found else ""
            raise SerializationError(text, field=field) from error
