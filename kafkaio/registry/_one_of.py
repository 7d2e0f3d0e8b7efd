"""Values of several classes on one topic."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar, overload
from uuid import UUID

from kafkaio._public import public
from kafkaio.errors import ConfigurationError, SerializationError
from kafkaio.registry._schema import Schema
from kafkaio.registry._serde import MOST_COMPILED, SerdeCore
from kafkaio.registry._wire import PREFIX_BYTES, SchemaName
from kafkaio.serde import DeserializationContext, Serde, SerializationContext

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@public("kafkaio.registry")
class OneOf(Serde[T]):
    """Values of several classes on one topic, each by a serde of its own.

    ::

        created = Avro(Created, registry, subject=topic_record_name)
        cancelled = Avro(Cancelled, registry, subject=topic_record_name)
        orders = kafkaio.Topic("orders", value=OneOf(created, cancelled))

    A value is written by the serde of its class. What is read is made by the serde
    whose record has the name of the record in the schema that wrote it; namespaces are
    not compared. With `topic_name` all of them would be versions of one subject, so
    each serde takes `record_name` or `topic_record_name`.

    Args:
        serdes: `Avro`, `JsonSchema` or `Protobuf` of classes, with one registry.

    Raises:
        ConfigurationError: there is no serde, one is of another kind or registry, has
            no class, or two have the same class, or records of the same name.
    """

    __slots__ = ("_by_class", "_by_name", "_chosen", "_serdes")

    @overload
    def __init__(self: OneOf[A], one: Serde[A], /) -> None: ...

    @overload
    def __init__(self: OneOf[A | B], one: Serde[A], two: Serde[B], /) -> None: ...

    @overload
    def __init__(
        self: OneOf[A | B | C], one: Serde[A], two: Serde[B], three: Serde[C], /
    ) -> None: ...

    @overload
    def __init__(
        self: OneOf[A | B | C | D],
        one: Serde[A],
        two: Serde[B],
        three: Serde[C],
        four: Serde[D],
        /,
    ) -> None: ...

    @overload
    def __init__(self, *serdes: Serde[T]) -> None: ...

    def __init__(self, *serdes: Serde[Any]) -> None:
        if not serdes:
            raise ConfigurationError("OneOf needs a serde at least")
        self._serdes = serdes
        self._by_class: dict[type, SerdeCore] = {}
        self._by_name: dict[tuple[str, str], SerdeCore] = {}
        # By the prefix of the bytes, where a schema has one record.
        self._chosen: dict[bytes, SerdeCore] = {}
        for serde in serdes:
            self._add(serde)

    def _add(self, serde: Serde[Any]) -> None:
        core = getattr(serde, "_core", None)
        if not isinstance(core, SerdeCore):
            raise ConfigurationError(
                f"{serde!r} is neither Avro, JsonSchema nor Protobuf"
            )
        kind = core.kind
        if kind is None:
            raise ConfigurationError(f"{serde!r} has no class to be known by")
        name = core.record_name
        if kind in self._by_class or name in self._by_name:
            raise ConfigurationError(f"two serdes are for {name[1]}")
        if any(core.registry is not other.registry for other in self._by_name.values()):
            raise ConfigurationError("the serdes have several registries")
        self._by_class[kind] = self._by_name[name] = core

    def serialize(
        self, value: T, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a value, or a coroutine while the schema is not known.

        Raises:
            SerializationError: the value is of no class of the serdes, or does not fit
                its schema.
            SchemaError: the registry refuses the schema, or does not have it.
            RegistryError: the registry failed.
        """
        core = self._by_class.get(type(value))
        if core is None:
            core = next(
                (
                    each
                    for kind, each in self._by_class.items()
                    if isinstance(value, kind)
                ),
                None,
            )
        if core is None:
            raise SerializationError(
                f"{type(value).__name__} is none of {self._names()}"
            )
        return core.serialize(value, context)

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T | Awaitable[T]:
        """Return the value of bytes, or a coroutine while the schema is not known.

        Raises:
            SerializationError: the bytes name no schema, hold another record than those
                of the serdes, or are not what their schema writes.
            SchemaError: the registry does not have the schema, or it is not valid.
            RegistryError: the registry failed.
        """
        core = None if context.headers else self._chosen.get(data[:PREFIX_BYTES])
        if core is None:
            first = next(iter(self._by_class.values()))
            name = first.name_of(data, context)
            schema = first.registry.known(name.id)
            if schema is None:
                later: Awaitable[T] = self._deserialize_later(
                    first, name, data, context
                )
                return later
            core = self._choose(schema, name, data)
        result: T | Awaitable[T] = core.deserialize(data, context)
        return result

    async def _deserialize_later(
        self,
        first: SerdeCore,
        name: SchemaName,
        data: bytes,
        context: DeserializationContext,
    ) -> Any:
        if isinstance(name.id, UUID):
            schema = await first.registry.schema_by_guid(name.id)
        else:
            schema = await first.registry.schema(name.id)
        result = self._choose(schema, name, data).deserialize(data, context)
        return await result if isinstance(result, Coroutine) else result

    def _choose(self, schema: Schema, name: SchemaName, data: bytes) -> SerdeCore:
        found: set[str] = set()
        for (language, record), core in self._by_name.items():
            if language == schema.type:
                found = found or core.records_of(schema, name, data)
                if record in found:
                    self._keep(schema, name, data, core)
                    return core
        held = " or ".join(sorted(found)) or f"a record of the type {schema.type}"
        raise SerializationError(f"the data is {held}, and none of {self._names()}")

    def _keep(
        self, schema: Schema, name: SchemaName, data: bytes, core: SerdeCore
    ) -> None:
        if schema.type == "PROTOBUF" or name.indexes is not None:
            return
        if len(self._chosen) >= MOST_COMPILED:
            self._chosen.clear()
        self._chosen[data[:PREFIX_BYTES]] = core

    async def prepare(self, topic: str, *, is_key: bool = False) -> None:
        """Find, or register, the schemas of all classes for a topic.

        Args:
            topic: the topic to which values will be written.
            is_key: whether they are keys.

        Raises:
            SchemaError: the registry refuses a schema, or does not have it.
            RegistryError: the registry failed.
        """
        for core in self._by_class.values():
            await core.prepare(topic, is_key=is_key)

    def _names(self) -> str:
        return ", ".join(record for _, record in self._by_name)

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self._serdes))})"
