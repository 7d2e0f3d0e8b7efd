"""Serializers and deserializers, and topics that know their types.

A serializer is a function of the value, or an object with ``serialize(value,
context)``; a deserializer is a function of the bytes, or an object with
``deserialize(data, context)``. An object with both is a *serde*. The methods of an
object may be coroutine functions, or return a coroutine for some values only: then the
partition waits for it, and everything else goes on.

None is never passed to either: a record without a key and a tombstone stay None.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

from kafkaio._dataclass import dataclass
from kafkaio._generic import K, V
from kafkaio._public import public
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import Header

__all__ = [
    "AsyncDeserializer",
    "DeserializationContext",
    "Deserializer",
    "DeserializerLike",
    "Serde",
    "SerializationContext",
    "Serializer",
    "SerializerLike",
    "Topic",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class SerializationContext:
    """What a key or a value is serialized for.

    Attributes:
        topic: name of the topic.
        headers: the headers of the record; a serializer may change the list.
        is_key: whether it is the key, and not the value.
    """

    topic: str
    headers: list[Header]
    is_key: bool

    @property
    def field(self) -> str:
        """``key`` or ``value``; confluent-kafka's serializers ask for this name."""
        return "key" if self.is_key else "value"


@dataclass(slots=True)
class DeserializationContext:
    """What a key or a value is deserialized for.

    Attributes:
        topic: name of the topic.
        headers: the headers of the record.
        is_key: whether it is the key, and not the value.
    """

    topic: str
    headers: Sequence[Header]
    is_key: bool

    @property
    def field(self) -> str:
        """``key`` or ``value``; confluent-kafka's deserializers ask for this name."""
        return "key" if self.is_key else "value"


class Serializer(Protocol[T_contra]):
    """Turns values of one type into bytes, and knows what for."""

    def serialize(
        self, value: T_contra, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a value, or a coroutine that returns them."""
        ...


class Deserializer(Protocol[T_co]):
    """Turns bytes into values of one type, and knows what from."""

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T_co | Awaitable[T_co]:
        """Return the value of bytes, or a coroutine that returns it."""
        ...


class AsyncDeserializer(Protocol[T_co]):
    """A `Deserializer` whose method is a coroutine function."""

    async def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T_co:
        """Return the value of bytes."""
        ...


class Serde(Protocol[T]):
    """A `Serializer` and a `Deserializer` of the same type."""

    def serialize(
        self, value: T, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a value, or a coroutine that returns them."""
        ...

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T | Awaitable[T]:
        """Return the value of bytes, or a coroutine that returns it."""
        ...


#: What ``key_serializer`` and ``value_serializer`` take. A function gets the context if
#: its second positional parameter has no default, or is named ``context`` or ``ctx``.
SerializerLike: TypeAlias = (
    Callable[[T], bytes | None]
    | Callable[[T, SerializationContext], bytes | None]
    | Serializer[T]
)
#: What ``key_deserializer`` and ``value_deserializer`` take; likewise.
DeserializerLike: TypeAlias = (
    Callable[[bytes], T]
    | Callable[[bytes, DeserializationContext], T]
    | Deserializer[T]
)


@public("kafkaio")
class Topic(Generic[K, V]):
    """A topic whose keys and values have types.

    ::

        orders = kafkaio.Topic("orders", value=Json(Order))
        await producer.send(orders, Order(7), key=b"customer-7")

    Args:
        name: name of the topic.
        key: serializes and deserializes keys; without it they are bytes or None.
        value: serializes and deserializes values; likewise.

    Raises:
        ArgumentTypeError: an argument has the wrong type.
        ArgumentValueError: the name is empty.
    """

    __slots__ = ("key", "name", "value")

    @overload
    def __init__(self: Topic[bytes | None, bytes | None], name: str) -> None: ...

    @overload
    def __init__(
        self: Topic[bytes | None, ValueT], name: str, *, value: Serde[ValueT]
    ) -> None: ...

    @overload
    def __init__(
        self: Topic[KeyT, bytes | None], name: str, *, key: Serde[KeyT]
    ) -> None: ...

    @overload
    def __init__(
        self: Topic[KeyT, ValueT], name: str, *, key: Serde[KeyT], value: Serde[ValueT]
    ) -> None: ...

    def __init__(
        self,
        name: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"name must be str, not {type(name).__name__}")
        if not name:
            raise ArgumentValueError("the name of a topic must not be empty")
        for what, serde in (("key", key), ("value", value)):
            if serde is None:
                continue
            if not (hasattr(serde, "serialize") and hasattr(serde, "deserialize")):
                raise ArgumentTypeError(
                    f"{what} must have the methods serialize and deserialize, "
                    f"and {serde!r} has not"
                )
        self.name = name
        self.key: Serde[K] | None = key
        self.value: Serde[V] | None = value

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        parts += [] if self.key is None else [f"key={self.key!r}"]
        parts += [] if self.value is None else [f"value={self.value!r}"]
        return f"Topic({', '.join(parts)})"
