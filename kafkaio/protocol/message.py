"""The bases of the generated messages, which the codec and the client know alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

from kafkaio.protocol.schema import Struct

__all__ = [
    "Buffer",
    "Buffers",
    "Data",
    "Header",
    "Message",
    "Request",
    "Response",
    "ResponseT",
]

#: What bytes come in: a memoryview lends its buffer, so records are not copied.
Buffer: TypeAlias = bytes | bytearray | memoryview
#: Record data to send: one buffer, or several that are written one after the other.
Buffers: TypeAlias = Buffer | Sequence[Buffer]


class Message(Struct):
    """A struct that stands by itself and has versions of its own."""

    __slots__ = ()

    #: Kafka's name, such as ``ProduceRequest``.
    NAME: ClassVar[str]
    #: The oldest version that can be encoded and decoded.
    MIN_VERSION: ClassVar[int]
    #: The newest version that Kafka calls stable: never negotiate a higher one.
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
    """What a broker answers."""

    __slots__ = ()

    API_KEY: ClassVar[int]


ResponseT = TypeVar("ResponseT", bound=Response, covariant=True)


class Request(Message, Generic[ResponseT]):
    """What a client asks; the parameter is the class of the answer."""

    __slots__ = ()

    API_KEY: ClassVar[int]

    @classmethod
    def response_type(cls) -> type[ResponseT]:
        """Return the class of the answer."""
        raise NotImplementedError


class Data(Message):
    """A value inside records or opaque fields, not sent by itself."""

    __slots__ = ()


class Header(Message):
    """What stands before a request or a response in its frame."""

    __slots__ = ()
