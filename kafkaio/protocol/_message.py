"""The parts of every message: fields, structs, and the bases of the messages.

The generated classes inherit from these. The codec compiles its functions from the
``SCHEMA`` of each class, and the client knows messages by their bases alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias, TypeVar
from uuid import UUID

from kafkaio._generic import Generic
from kafkaio._named_tuple import NamedTuple

#: The types of bytes. A memoryview refers to its buffer, so that records need no copy.
Buffer: TypeAlias = bytes | bytearray | memoryview
#: Record data to send: one buffer, or several that are sent one after the other.
Buffers: TypeAlias = Buffer | Sequence[Buffer]
#: The first and the last version, both included.
Range = tuple[int, int]
Scalar = int | float | str | bytes

#: Kafka's "no id".
ZERO_UUID = UUID(int=0)


class Field(NamedTuple):
    """One field of a struct.

    Attributes:
        name: the attribute that holds the value.
        type: a primitive's name in Kafka's schemas, or the class of a struct.
        versions: the message versions that have the field.
        array: whether the value is a list of ``type``.
        nullable: the versions in which the value may be None.
        tag: its number among tagged fields, in the versions of ``tagged``.
        tagged: the versions in which it is optional, after the plain fields.
        default: the value when absent; None is null, ``()`` the zero of the type.
        ignorable: whether a version without the field may silently drop a value.
        flexible: False if lengths stay classic even in flexible versions.
    """

    name: str
    type: str | type[Struct]
    versions: Range
    array: bool = False
    nullable: Range | None = None
    tag: int | None = None
    tagged: Range | None = None
    default: Scalar | tuple[()] | None = ()
    ignorable: bool = False
    flexible: bool = True

    def present(self, version: int) -> bool:
        """Whether ``version`` has the field, plain or tagged."""
        return _within(self.versions, version)

    def is_nullable(self, version: int) -> bool:
        """Whether the value may be None in ``version``."""
        return _within(self.nullable, version)

    def is_plain(self, version: int) -> bool:
        """Whether ``version`` has the field, and not as a tagged one."""
        return self.present(version) and not self.is_tagged(version)

    def is_tagged(self, version: int) -> bool:
        """Whether the field is tagged in ``version``."""
        return _within(self.tagged, version)


def _within(versions: Range | None, version: int) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


class Struct:
    """A sequence of fields; ``SCHEMA`` says how each version encodes them."""

    __slots__ = ()

    SCHEMA: ClassVar[tuple[Field, ...]] = ()


def layout(kind: type[Struct], version: int) -> tuple[object, ...]:
    """Return how a version encodes the fields: the same where two do not differ."""
    return tuple(
        (
            field.is_plain(version),
            field.is_tagged(version),
            field.is_nullable(version),
            () if isinstance(field.type, str) else layout(field.type, version),
        )
        for field in kind.SCHEMA
    )


class Message(Struct):
    """A struct with a name and versions of its own, which is encoded by itself."""

    __slots__ = ()

    #: Kafka's name, such as ``ProduceRequest``.
    NAME: ClassVar[str]
    #: The oldest version that can be encoded and decoded.
    MIN_VERSION: ClassVar[int]
    #: The newest version that Kafka calls stable; a higher one is never negotiated.
    MAX_VERSION: ClassVar[int]
    #: The newest version that can be encoded and decoded, stable or not.
    LAST_VERSION: ClassVar[int]
    #: The first version with compact lengths and tagged fields; None: no version.
    FLEXIBLE_FROM: ClassVar[int | None]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether ``version`` has compact lengths and tagged fields (KIP-482)."""
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


class Response(Message):
    """The answer of a broker."""

    __slots__ = ()

    API_KEY: ClassVar[int]


ResponseT = TypeVar("ResponseT", bound=Response, covariant=True)


class Request(Message, Generic[ResponseT]):
    """The request of a client; the type parameter is the class of the answer."""

    __slots__ = ()

    API_KEY: ClassVar[int]

    @classmethod
    def response_type(cls) -> type[ResponseT]:
        """Return the class of the answer."""
        raise NotImplementedError


class Data(Message):
    """A value inside a record or an opaque field, which is never sent by itself."""

    __slots__ = ()


class Header(Message):
    """The header that precedes a request or a response in its frame."""

    __slots__ = ()
