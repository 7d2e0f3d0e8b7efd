"""Topics that know their types, and what serializes and deserializes for them.

Every producer and consumer needs these types; the serdes that come with kafkaio
(`kafkaio.serde`) are loaded when they are named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import getattr_static, isfunction
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from kafkaio._dataclass import dataclass
from kafkaio._generic import Generic, K, K_co, KeyT, V, V_co, ValueT
from kafkaio._public import public
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import Header

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@public("kafkaio")
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


@public("kafkaio")
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


@public("kafkaio.serde")
class Serializer(Protocol[T_contra]):
    """Turns values of one type into bytes, and knows what for."""

    def serialize(
        self, value: T_contra, context: SerializationContext, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the bytes of a value, or a coroutine that returns them."""
        ...


@public("kafkaio.serde")
class Deserializer(Protocol[T_co]):
    """Turns bytes into values of one type, and knows what from."""

    def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T_co | Awaitable[T_co]:
        """Return the value of bytes, or a coroutine that returns it."""
        ...


@public("kafkaio.serde")
class AsyncDeserializer(Protocol[T_co]):
    """A `Deserializer` whose method is a coroutine function."""

    async def deserialize(
        self, data: bytes, context: DeserializationContext, /
    ) -> T_co:
        """Return the value of bytes."""
        ...


@public("kafkaio.serde")
class ReadableTopic(Protocol[K_co, V_co]):
    """A `kafkaio.Topic`, as far as a consumer needs it."""

    @property
    def name(self) -> str:
        """Name of the topic."""
        ...

    @property
    def key(self) -> Deserializer[K_co] | None:
        """Deserializes keys; None leaves them as bytes."""
        ...

    @property
    def value(self) -> Deserializer[V_co] | None:
        """Deserializes values; likewise."""
        ...


@public("kafkaio.serde")
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


#: A function alone, without a context or with one; see `DeserializerLike`.
PlainDeserializer: TypeAlias = (
    Callable[[bytes], T] | Callable[[bytes, DeserializationContext], T]
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
            if isinstance(serde, type) and isfunction(
                getattr_static(serde, "serialize")
            ):
                raise ArgumentTypeError(
                    f"{what} must be an object, not a class: {serde.__name__}()"
                )
        self.name: str = name
        self.key: Serde[K] | None = key
        self.value: Serde[V] | None = value

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        parts += [] if self.key is None else [f"key={self.key!r}"]
        parts += [] if self.value is None else [f"value={self.value!r}"]
        return f"Topic({', '.join(parts)})"
