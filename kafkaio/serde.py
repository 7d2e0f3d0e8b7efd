"""Serializers and deserializers, and topics that know their types.

A serializer is a function of the value, or an object with ``serialize(value,
context)``; a deserializer is a function of the bytes, or an object with
``deserialize(data, context)``. An object with both is a *serde*. The methods of an
object may be coroutine functions, or return a coroutine for some values only: then the
partition waits for it, and everything else goes on.

None is never passed to either: a record without a key and a tombstone stay None. Only a
deserializer with a true attribute ``takes_none`` is called with it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from struct import Struct, error as StructError
from types import UnionType
from typing import Any, Self, TypeAlias, TypeVar, get_args, overload
from uuid import UUID

from kafkaio._topic import (
    AsyncDeserializer as AsyncDeserializer,
    DeserializationContext as DeserializationContext,
    Deserializer as Deserializer,
    DeserializerLike as DeserializerLike,
    ReadableTopic as ReadableTopic,
    Serde as Serde,
    SerializationContext as SerializationContext,
    Serializer as Serializer,
    SerializerLike as SerializerLike,
    Topic as Topic,
)
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, SerializationError

__all__ = [
    "AsyncDeserializer",
    "Boolean",
    "Bytes",
    "DeserializationContext",
    "Deserializer",
    "DeserializerLike",
    "Double",
    "Float",
    "Integer",
    "Json",
    "Long",
    "ReadableTopic",
    "Serde",
    "SerializationContext",
    "Serializer",
    "SerializerLike",
    "Short",
    "String",
    "Topic",
    "Uuid",
    "nullable",
    "of",
]

T = TypeVar("T")


class Json(Serde[T]):
    """JSON without a registry: compact, in UTF-8, fields in the order of the class.

    Classes are dataclasses and TypedDicts, which need no library, models and
    dataclasses of pydantic, and Structs of msgspec. Fields of dataclasses can be
    ``str``, ``int``, ``float``, ``bool``, ``bytes`` (written in base64), ``Decimal``,
    ``UUID``, ``datetime``, ``date``, ``time`` (written as strings), ``Enum`` (by its
    value), ``Literal``, lists, tuples, sets, dicts, Optional, other classes, and unions
    whose members can be told apart. pydantic and msgspec write by their own rules, and
    pydantic by its aliases; msgspec checks the types of fields only when it reads.

    Equal values are written alike, so they can be keys: keys of dicts are sorted, and
    so are sets. pydantic and msgspec keep the order of dicts.

    Fields that a class does not have are ignored when reading, so that writers can add
    some. A field that is missing gets its default.

    Without a class any value of JSON is written and read: dict, list, str, int, float,
    bool, and None inside of them.

    Args:
        kind: the class, or another type such as ``list[Order]``. For a union, say which
            in an annotation: ``events: Json[Placed | Paid] = Json(Placed | Paid)``.

    Raises:
        ArgumentTypeError: the type, or one inside it, has no form in JSON.
    """

    __slots__ = ("_explain", "_faults", "_instance", "_read", "_write", "kind")

    @overload
    def __init__(self: Json[object]) -> None: ...

    @overload
    def __init__(self, kind: type[T]) -> None: ...

    @overload
    def __init__(self, kind: UnionType) -> None: ...

    def __init__(self, kind: object = object) -> None:
        # Few programs need it, and all of them import this module.
        from kafkaio._typed_json import engine

        made = engine(kind)
        self.kind: object = kind
        self._write: Callable[[T], bytes] = made.write
        self._read: Callable[[bytes], T] = made.read
        self._faults = made.faults
        self._explain = made.explain
        self._instance = made.instance

    def serialize(self, value: T, _context: SerializationContext, /) -> bytes:
        """Return a value as JSON.

        Raises:
            SerializationError: it does not fit the class; ``field`` says where.
        """
        if not isinstance(value, self._instance):
            raise _wrong_type(self, value)
        try:
            return self._write(value)
        except self._faults as error:
            raise self._misfit(error) from error

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> T:
        """Return the value of JSON.

        Raises:
            SerializationError: it does not fit the class; ``field`` says where.
        """
        try:
            return self._read(data)
        except self._faults as error:
            raise self._misfit(error) from error

    def __reduce__(self) -> tuple[type[Self], tuple[object]]:
        return type(self), (self.kind,)

    def _misfit(self, error: Exception) -> SerializationError:
        reason, field = self._explain(error)
        about = f"{field}: {reason}" if field else reason
        return SerializationError(f"{self!r}: {about}", field=field)

    def __repr__(self) -> str:
        if self.kind is object:
            return "Json()"
        if isinstance(self.kind, type) and not get_args(self.kind):
            return f"Json({self.kind.__qualname__})"
        return f"Json({self.kind})"


def _wrong_type(serde: object, value: object) -> SerializationError:
    return SerializationError(f"{serde!r} does not write {type(value).__name__}")


class Bytes:
    """Bytes as they are, as Kafka's ``ByteArraySerializer``."""

    __slots__ = ()

    def serialize(self, value: bytes, _context: SerializationContext, /) -> bytes:
        """Return the bytes.

        Raises:
            SerializationError: the value is neither bytes, bytearray nor memoryview.
        """
        if type(value) is bytes:
            return value
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong_type(self, value)
        return bytes(value)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> bytes:
        """Return the bytes."""
        return data

    def __repr__(self) -> str:
        return "Bytes()"


class String:
    """Strings, as Kafka's ``StringSerializer`` writes them.

    Args:
        encoding: the name of the encoding, as Python has it.

    Raises:
        ArgumentValueError: Python has no such encoding.
    """

    __slots__ = ("encoding",)

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
        except LookupError:
            raise ArgumentValueError(f"unknown encoding: {encoding!r}") from None
        self.encoding: str = encoding

    def serialize(self, value: str, _context: SerializationContext, /) -> bytes:
        """Return a string in the encoding.

        Raises:
            SerializationError: the value is no string, or has characters that the
                encoding has not; Java would write question marks.
        """
        if not isinstance(value, str):
            raise _wrong_type(self, value)
        try:
            return value.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SerializationError(
                f"{self!r} cannot write the character at {error.start}"
            ) from None

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> str:
        """Return the string of bytes.

        Raises:
            SerializationError: the bytes are not in the encoding.
        """
        try:
            return str(data, self.encoding)
        except UnicodeDecodeError as error:
            raise SerializationError(
                f"{self!r} cannot read the byte at {error.start}"
            ) from None

    def __repr__(self) -> str:
        return "String()" if self.encoding == "utf-8" else f"String({self.encoding!r})"


def _pack(serde: _Number, value: object, kind: type | UnionType) -> bytes:
    # True is an int for Python, and no number for Java.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong_type(serde, value)
    try:
        return serde._struct.pack(value)
    except (StructError, OverflowError):
        raise SerializationError(
            f"{serde!r} has {serde._struct.size} bytes, and the value needs more"
        ) from None


def _unpack(serde: _Number, data: bytes) -> Any:
    if len(data) != serde._struct.size:
        raise _wrong_size(serde, data, serde._struct.size)
    return serde._struct.unpack(data)[0]


def _wrong_size(serde: object, data: bytes, size: int) -> SerializationError:
    return SerializationError(f"{serde!r} has {size} bytes, not {len(data)}")


class Short:
    """Integers of 16 bits, signed and big-endian, as Kafka's ``ShortSerializer``."""

    __slots__ = ()
    _struct = Struct(">h")

    def serialize(self, value: int, _context: SerializationContext, /) -> bytes:
        """Return an integer in 2 bytes.

        Raises:
            SerializationError: the value is not an integer, or needs more bytes.
        """
        return _pack(self, value, int)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> int:
        """Return the integer of 2 bytes.

        Raises:
            SerializationError: there are more bytes, or fewer.
        """
        value: int = _unpack(self, data)
        return value

    def __repr__(self) -> str:
        return "Short()"


class Integer:
    """Integers of 32 bits, signed and big-endian, as Kafka's ``IntegerSerializer``."""

    __slots__ = ()
    _struct = Struct(">i")

    def serialize(self, value: int, _context: SerializationContext, /) -> bytes:
        """Return an integer in 4 bytes.

        Raises:
            SerializationError: the value is not an integer, or needs more bytes.
        """
        return _pack(self, value, int)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> int:
        """Return the integer of 4 bytes.

        Raises:
            SerializationError: there are more bytes, or fewer.
        """
        value: int = _unpack(self, data)
        return value

    def __repr__(self) -> str:
        return "Integer()"


class Long:
    """Integers of 64 bits, signed and big-endian, as Kafka's ``LongSerializer``."""

    __slots__ = ()
    _struct = Struct(">q")

    def serialize(self, value: int, _context: SerializationContext, /) -> bytes:
        """Return an integer in 8 bytes.

        Raises:
            SerializationError: the value is not an integer, or needs more bytes.
        """
        return _pack(self, value, int)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> int:
        """Return the integer of 8 bytes.

        Raises:
            SerializationError: there are more bytes, or fewer.
        """
        value: int = _unpack(self, data)
        return value

    def __repr__(self) -> str:
        return "Long()"


class Float:
    """Floats of 4 bytes, big-endian, as Kafka's ``FloatSerializer``.

    A float of Python has 8 bytes: what is read is the nearest number of 4.
    """

    __slots__ = ()
    _struct = Struct(">f")

    def serialize(self, value: float, _context: SerializationContext, /) -> bytes:
        """Return a number in 4 bytes.

        Raises:
            SerializationError: the value is not a number, or is too large.
        """
        return _pack(self, value, float | int)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> float:
        """Return the number of 4 bytes.

        Raises:
            SerializationError: there are more bytes, or fewer.
        """
        value: float = _unpack(self, data)
        return value

    def __repr__(self) -> str:
        return "Float()"


class Double:
    """Floats of 8 bytes, big-endian, as Kafka's ``DoubleSerializer``."""

    __slots__ = ()
    _struct = Struct(">d")

    def serialize(self, value: float, _context: SerializationContext, /) -> bytes:
        """Return a number in 8 bytes.

        Raises:
            SerializationError: the value is not a number, or is too large.
        """
        return _pack(self, value, float | int)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> float:
        """Return the number of 8 bytes.

        Raises:
            SerializationError: there are more bytes, or fewer.
        """
        value: float = _unpack(self, data)
        return value

    def __repr__(self) -> str:
        return "Double()"


#: The serdes of numbers, which differ in their structs alone.
_Number: TypeAlias = Short | Integer | Long | Float | Double


class Boolean:
    """Booleans: the byte 1 or 0, as Kafka's ``BooleanSerializer``."""

    __slots__ = ()

    def serialize(self, value: bool, _context: SerializationContext, /) -> bytes:  # noqa: FBT001
        """Return a boolean in a byte.

        Raises:
            SerializationError: the value is not a boolean.
        """
        if not isinstance(value, bool):
            raise _wrong_type(self, value)
        return b"\x01" if value else b"\x00"

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> bool:
        """Return the boolean of a byte.

        Raises:
            SerializationError: there are more bytes, or the byte is neither 1 nor 0.
        """
        if len(data) != 1:
            raise _wrong_size(self, data, 1)
        if data not in {b"\x00", b"\x01"}:
            raise SerializationError(f"{self!r} is the byte 0 or 1, not {data[0]}")
        return data == b"\x01"

    def __repr__(self) -> str:
        return "Boolean()"


class Uuid:
    """UUIDs as strings of 36 characters, as Kafka's ``UUIDSerializer``."""

    __slots__ = ()

    def serialize(self, value: UUID, _context: SerializationContext, /) -> bytes:
        """Return a UUID as a string.

        Raises:
            SerializationError: the value is not a UUID.
        """
        if not isinstance(value, UUID):
            raise _wrong_type(self, value)
        return str(value).encode("ascii")

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> UUID:
        """Return the UUID of a string.

        Raises:
            SerializationError: the bytes are not the string of a UUID.
        """
        if len(data) != _UUID_SIZE:
            raise _wrong_size(self, data, _UUID_SIZE)
        try:
            return UUID(str(data, "ascii"))
        except ValueError:
            raise SerializationError(f"{self!r}: not the text of a UUID") from None

    def __repr__(self) -> str:
        return "Uuid()"


_UUID_SIZE = 36


def nullable(serde: Serde[T]) -> Serde[T | None]:
    """Return the same serde for values that may be None, in the eyes of type checkers.

    A tombstone is None whatever the type of a topic's values says. With
    ``Topic("orders", value=nullable(Json(Order)))`` a type checker knows it, and
    ``record.value`` is ``Order | None``.
    """
    # None is passed to no serde, so each of them is one for `T | None`, too.
    return serde  # type: ignore[return-value]


def of(
    serialize: Callable[[T], bytes | None], deserialize: Callable[[bytes], T]
) -> Serde[T]:
    """Make a serde of two plain functions.

    ``of(str.encode, bytes.decode)`` is one for strings.

    Args:
        serialize: returns the bytes of a value, or None for a tombstone.
        deserialize: returns the value of bytes.

    Raises:
        ArgumentTypeError: one of them cannot be called, or is a coroutine function.
    """
    for name, function in (("serialize", serialize), ("deserialize", deserialize)):
        if not callable(function):
            raise ArgumentTypeError(f"{name} must be a function, not {function!r}")
        if iscoroutinefunction(function):
            raise ArgumentTypeError(
                f"{name} is a coroutine function. Write a class with the methods "
                "serialize and deserialize, which are awaited"
            )
    return _Functions(serialize, deserialize)


class _Functions(Serde[T]):
    """A serde of two functions."""

    __slots__ = ("_deserialize", "_serialize")

    def __init__(
        self, serialize: Callable[[T], bytes | None], deserialize: Callable[[bytes], T]
    ) -> None:
        self._serialize = serialize
        self._deserialize = deserialize

    def serialize(self, value: T, _context: SerializationContext, /) -> bytes | None:
        return self._serialize(value)

    def deserialize(self, data: bytes, _context: DeserializationContext, /) -> T:
        return self._deserialize(data)

    def __repr__(self) -> str:
        return f"of({self._serialize!r}, {self._deserialize!r})"
