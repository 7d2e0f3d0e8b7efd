"""Protobuf: messages of generated classes."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from kafkaio._public import public
from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry._proto_files import MessageTree, messages_of
from kafkaio.registry._schema import Schema, SchemaType
from kafkaio.registry._serde import (
    Read,
    SchemaPart,
    SerdeCore,
    SerdeOptions,
    ValueClass,
    Wire,
    Write,
    check_size,
)
from kafkaio.registry._subjects import SubjectStrategy, topic_name
from kafkaio.registry._wire import pack_indexes, parse_indexes
from kafkaio.serde import DeserializationContext, Serde, SerializationContext

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from kafkaio.registry._client import Registry

    MessageT = TypeVar("MessageT", bound=Message)
else:
    MessageT = TypeVar("MessageT")

#: Files that every library of Protobuf has: registries have them, too.
_KNOWN_FILES = ("google/protobuf/", "google/type/", "confluent/")


def _protobuf() -> ModuleType:
    try:
        module = import_module("google.protobuf.message")
    except ImportError as error:
        raise ConfigurationError(
            "Protobuf needs protobuf; install it with: pip install 'kafkaio[registry]'"
        ) from error
    return module


@public("kafkaio.registry")
class Protobuf(Serde[MessageT]):
    """Messages of a class that ``protoc`` generated, with a schema in a registry.

    ::

        registry = Registry("http://localhost:8081")
        orders = kafkaio.Topic("orders", value=Protobuf(OrderMessage, registry))

    The schema is the file of the class. The files that it imports are registered first,
    under their names; those of ``google/protobuf`` are not. A record names its message
    by its place in the file.

    Reading gives messages of the class. What is read must be a message of the same name
    in the schema that wrote it; fields that are new or gone are Protobuf's own matter.

    The result is there at once if the schema is cached; else a coroutine asks the
    registry. A serde may be used in several threads and on several event loops.

    Args:
        message: the class.
        registry: the registry.
        subject: names the subject: `topic_name`, `record_name`, `topic_record_name`, or
            a function of the context and the full name of the message.
        register: whether a schema that is not there is registered; if not, it is looked
            up.
        use_latest: whether records name the latest schema of the subject.
        schema_id: the id of the schema that records name.
        normalize: whether the registry normalizes schemas before it compares them.
        wire: where records name their schema: ``prefix`` for an id in front of the
            payload, ``header`` for a GUID in a header. Both are read.

    Raises:
        ConfigurationError: protobuf is not installed, the class is no generated one, or
            an option is wrong.
        SchemaError: the file is too large.
    """

    __slots__ = ("_core", "_format")

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        message: type[MessageT],
        registry: Registry,
        *,
        subject: SubjectStrategy = topic_name,
        register: bool = True,
        use_latest: bool = False,
        schema_id: int | None = None,
        normalize: bool = False,
        wire: Wire = "prefix",
    ) -> None:
        options = SerdeOptions(
            subject, register, use_latest, schema_id, normalize, wire
        )
        self._format = _ProtobufFormat(message)
        self._core = SerdeCore(registry, self._format, options)

    def serialize(
        self, value: MessageT, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a message, or a coroutine while the schema is not known.

        Args:
            value: the message.
            context: the topic, and whether it is the key. With ``wire="header"`` its
                headers get the one that names the schema; one that names another
                schema is removed.

        Raises:
            SerializationError: it is no message of the class, or a required field is
                missing; ``field`` names it.
            SchemaError: the registry refuses the schema, or does not have it.
            RegistryError: the registry failed.
            ConfigurationError: the registry has no GUIDs.
        """
        return self._core.serialize(value, context)

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> MessageT | Awaitable[MessageT]:
        """Return the message of bytes, or a coroutine while the schema is not known.

        Args:
            data: the bytes.
            context: the headers, and whether it is the key.

        Raises:
            SerializationError: the bytes name no schema, or no message in it, or
                another one than the class, or are not what it writes.
            SchemaError: the registry does not have the schema, or it is not valid.
            RegistryError: the registry failed.
        """
        result: MessageT | Awaitable[MessageT] = self._core.deserialize(data, context)
        return result

    async def prepare(self, topic: str, *, is_key: bool = False) -> None:
        """Find, or register, the schema for a topic before the first record.

        Args:
            topic: the topic to which messages will be written.
            is_key: whether they are keys.

        Raises:
            SchemaError: the registry refuses the schema, or does not have it.
            RegistryError: the registry failed.
        """
        await self._core.prepare(topic, is_key=is_key)

    @property
    def schema(self) -> Schema:
        """The file of the class, without the references to those that it imports."""
        return self._format.schema

    def __repr__(self) -> str:
        return f"Protobuf({self._format.record}, {self._core!r})"


class _ProtobufFormat:
    """Protobuf, for the messages of one serde."""

    __slots__ = (
        "_errors",
        "_kind",
        "_last",
        "_name",
        "parts",
        "record",
        "schema",
        "uses",
    )

    type: SchemaType = "PROTOBUF"

    def __init__(self, kind: Any) -> None:
        self._errors = _protobuf()
        descriptor = getattr(kind, "DESCRIPTOR", None)
        if not isinstance(kind, type) or not issubclass(kind, self._errors.Message):
            raise ConfigurationError(
                f"message must be a class that protoc generated, and is {kind!r}"
            )
        if descriptor is None:
            raise ConfigurationError(f"{kind.__name__} is no generated class")
        file = descriptor.file
        self._kind: Any = kind
        self._last: tuple[str, MessageTree] | None = None
        self.record: str = descriptor.full_name
        package = f"{file.package}." if file.package else ""
        self._name: str = self.record.removeprefix(package)
        self.schema = Schema(_text_of(file), "PROTOBUF")
        check_size(self.schema)
        self.uses: Sequence[str] = _imports(file)
        self.parts: Sequence[SchemaPart] = list(
            {part.name: part for part in _parts_of(file)}.values()
        )

    @property
    def kind(self) -> ValueClass:
        """The class of the messages."""
        kind: ValueClass = self._kind
        return kind

    @property
    def simple_record(self) -> str:
        """The name of the message, without the package."""
        return self._name

    def records_of(self, schema: Schema, data: bytes, start: int) -> set[str]:
        """Return the names to which message indexes may lead."""
        path, _ = parse_indexes(data, start)
        names = self._tree(schema.text).names(path)
        if not names:
            raise _no_message(path)
        return names

    def _tree(self, text: str) -> MessageTree:
        """Return the messages of a file, which is read once as long as it is in use."""
        if self._last is None or self._last[0] != text:
            self._last = text, messages_of(text)
        return self._last[1]

    def indexes(self, schema: Schema, references: Mapping[str, Schema]) -> bytes:
        """Return where the message stands in a schema."""
        del references
        found = messages_of(schema.text).indexes(self._name)
        if found is None:
            raise SchemaError("", f"has no message {self._name}")
        return pack_indexes(found)

    def writer(
        self, schema: Schema, references: Mapping[str, Schema], prefix: bytes
    ) -> Write:
        """Return how messages are written: their class does it."""
        del schema, references
        kind, encode_error = self._kind, self._errors.EncodeError

        def write(value: Any) -> bytes:
            if not isinstance(value, kind):
                raise SerializationError(
                    f"must be a {kind.__name__}, not {type(value).__name__}"
                )
            try:
                data: bytes = value.SerializeToString()
            except (encode_error, ValueError, RecursionError) as error:
                raise _unwritable(value, error) from error
            return prefix + data

        return write

    def reader(
        self,
        schema: Schema,
        references: Mapping[str, Schema],
        indexes: bytes | None,
        own: Mapping[str, Schema],
    ) -> Read:
        """Return how messages that name a schema are read."""
        del references, own
        tree = messages_of(schema.text)
        parse, error_type = self._kind.FromString, self._errors.DecodeError

        def parsed(data: bytes) -> Any:
            try:
                return parse(data)
            except (error_type, ValueError, RecursionError) as error:
                raise SerializationError(
                    f"the data is not a message {self._name}: {error}"
                ) from error

        if indexes is not None:
            path, end = parse_indexes(indexes, 0)
            if end != len(indexes):
                raise SerializationError("bytes follow the message indexes")
            self._check(tree, path)
            return lambda data, start: parsed(data[start:])

        # How the indexes stand in front of a payload, for those that were seen.
        known: list[bytes] = []

        def read(data: bytes, start: int) -> Any:
            for seen in known:
                if data.startswith(seen, start):
                    return parsed(data[start + len(seen) :])
            path, place = parse_indexes(data, start)
            self._check(tree, path)
            # A message has one spelling, and the first of a file two.
            if len(known) < 2:
                known.append(data[start:place])
            return parsed(data[place:])

        return read

    def _check(self, tree: MessageTree, indexes: Sequence[int]) -> None:
        names = tree.names(indexes)
        if not names:
            raise _no_message(indexes)
        if self._name not in names:
            raise SerializationError(
                f"the data is a message {min(names)}, and {self._name} is expected"
            )


def _no_message(indexes: Sequence[int]) -> SerializationError:
    return SerializationError(
        f"the message indexes {list(indexes)} lead to no message of the schema"
    )


def _unwritable(value: Any, error: Exception) -> SerializationError:
    missing = value.FindInitializationErrors()
    if missing:
        return SerializationError(f"{missing[0]} is not set", field=missing[0])
    return SerializationError(f"the message cannot be written: {error}")


def _text_of(file: Any) -> str:
    return base64.b64encode(file.serialized_pb).decode()


def _imports(file: Any) -> tuple[str, ...]:
    return tuple(
        each.name
        for each in file.dependencies
        if not each.name.startswith(_KNOWN_FILES)
    )


def _parts_of(file: Any) -> Iterator[SchemaPart]:
    """Return the files that a file imports, each after those that it imports."""
    for each in file.dependencies:
        if not each.name.startswith(_KNOWN_FILES):
            yield from _parts_of(each)
            yield SchemaPart(each.name, _text_of(each), _imports(each))
