"""Records from the arguments of calls, which are checked before anything is queued.

Most records are made at once. One whose serializer takes a context may have to wait for
what the serializer returned; until then it is a `Draft`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from kafkaio._arguments import check_partition, topic_name, type_name
from kafkaio._config import ProducerConfig
from kafkaio._machines.accumulator import PlainRecord
from kafkaio._named_tuple import NamedTuple
from kafkaio._runtime.clock import wall_clock
from kafkaio._topic import SerializationContext, Topic
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import Header, Headers

if TYPE_CHECKING:
    from kafkaio._config.serdes import Call

#: A topic in the arguments of a call.
TopicLike: TypeAlias = str | Topic[Any, Any]
#: Timestamps are less than this.
_TIME_END = 2**63 - 1
#: Topics of which a producer remembers how keys and values are serialized.
_MOST_TOPICS = 100


class _Part(NamedTuple):
    """How the keys, or the values, of a topic are serialized.

    Attributes:
        what: ``key`` or ``value``.
        serializer: the serializer, as the user has passed it; None for none.
        call: how it is called.
        topic: the name of the `kafkaio.Topic` that has it; None if the producer has.
    """

    what: str
    serializer: object
    call: Call | None
    topic: str | None

    @classmethod
    def of(cls, what: str, serializer: object, topic: str | None = None) -> _Part:
        if serializer is None:
            return cls(what, None, None, topic)
        from kafkaio._config.serdes import call_of

        return cls(what, serializer, call_of(serializer, "serialize"), topic)

    def start(
        self, given: object, topic: str, headers: list[Header]
    ) -> bytes | _Pending | None:
        call = self.call
        if call is None:
            result = given
        elif call.takes_context:
            context = SerializationContext(topic, headers, self.what == "key")
            result = call.function(given, context)
            if type(result) is not bytes and call.is_method and _is_awaitable(result):
                return _Pending(self, result, context, headers)
            if context.headers is not headers:
                headers[:] = context.headers
        else:
            result = call.function(given)
        if type(result) is bytes or result is None:
            return result
        return self.checked(result)

    def checked(self, result: object) -> bytes | None:
        if result is None or isinstance(result, bytes):
            return result
        return _copied(self.what, result, self.call is not None, self.topic)


class _Pending(NamedTuple):
    """A key or a value of which the serializer has returned an awaitable."""

    part: _Part
    awaited: Awaitable[object]
    context: SerializationContext
    headers: list[Header]

    async def finish(self) -> bytes | None:
        result = await self.awaited
        if self.context.headers is not self.headers:
            self.headers[:] = self.context.headers
        return self.part.checked(result)

    def drop(self) -> None:
        close = getattr(self.awaited, "close", None)
        if close is not None:
            close()


class Draft(NamedTuple):
    """A record of which a serializer has returned an awaitable.

    Attributes:
        topic: name of its topic.
        timestamp: its timestamp.
        key: its key; what to await for it; None.
        value: its value, serialized only if the key is; what to await for it; None.
        headers: the list that the serializers share.
        of_value: how the value is serialized.
    """

    topic: str
    timestamp: int
    key: bytes | _Pending | None
    value: object
    headers: list[Header]
    of_value: _Part

    async def finish(self) -> PlainRecord:
        """Await what is left, and return the record.

        Raises:
            ArgumentTypeError: a serializer's result, or a header that it has added, has
                the wrong type.
            ArgumentValueError: the name of such a header is impossible.
            Exception: a serializer raised it.
        """
        key, value = self.key, self.value
        if isinstance(key, _Pending):
            key = await key.finish()
            if value is not None:
                value = self.of_value.start(value, self.topic, self.headers)
        if isinstance(value, _Pending):
            value = await value.finish()
        assert value is None or isinstance(value, bytes)
        return self.timestamp, key, value, _plain_headers(self.headers)

    def drop(self) -> None:
        """Close what is not going to be awaited."""
        for each in (self.key, self.value):
            if isinstance(each, _Pending):
                each.drop()


class RecordMaker:
    """Makes records from arguments, with the serializers of a producer.

    None stays None: a serializer is called neither for a record without a key nor for
    a tombstone.

    Args:
        config: the serializers.
        inject: returns the headers to write for a topic and the headers of a record;
            None to write them as they are.

    Attributes:
        is_simple: whether no serializer takes a context, so that `make` serves.
    """

    __slots__ = (
        "_inject",
        "_of_key",
        "_of_value",
        "_serialize_key",
        "_serialize_value",
        "_topics",
        "_wall_ns",
        "is_simple",
    )

    def __init__(
        self,
        config: ProducerConfig,
        inject: Callable[[str, Headers], Headers] | None = None,
    ) -> None:
        self._of_key = _Part.of("key", config.key_serializer)
        self._of_value = _Part.of("value", config.value_serializer)
        key, value = self._of_key.call, self._of_value.call
        self._serialize_key = key and key.function
        self._serialize_value = value and value.function
        self.is_simple: bool = not any(
            call.takes_context for call in (key, value) if call is not None
        )
        self._topics: dict[Topic[Any, Any], tuple[_Part, _Part]] = {}
        self._inject = inject
        self._wall_ns = wall_clock()

    def make(
        self,
        topic: str,
        partition: int | None,
        key: object,
        value: object,
        headers: Headers,
        timestamp: int | None,
    ) -> PlainRecord:
        """Check where a record is to go, and return it; only if `is_simple`.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the topic is empty, the partition negative, or the
                timestamp or the name of a header impossible.
            ConfigurationError: a serializer is a function, and returned a coroutine.
            Exception: a serializer raised it.
        """
        # Each condition saves the call where the argument is right, as nearly always.
        if not topic:
            topic_name(topic)
        if partition is not None and (type(partition) is not int or partition < 0):
            check_partition(partition)
        if self._inject is not None:
            headers = self._inject(topic, headers)
        if key is not None and (
            type(key) is not bytes or self._serialize_key is not None
        ):
            key = _as_bytes("key", key, self._serialize_key)
        if type(value) is not bytes or self._serialize_value is not None:
            value = _as_bytes("value", value, self._serialize_value)
        if timestamp is None:
            timestamp = self._wall_ns() // 1_000_000
        elif type(timestamp) is not int or not 0 <= timestamp < _TIME_END:
            _refuse_timestamp(timestamp)
        plain = _plain_headers(headers) if headers else ()
        return timestamp, key, value, plain

    def make_in_context(
        self,
        topic: TopicLike,
        partition: int | None,
        key: object,
        value: object,
        headers: Headers,
        timestamp: int | None,
    ) -> PlainRecord | Draft:
        """Do what `make` does, with any serializers, for a name or a `kafkaio.Topic`.

        The key is serialized before the value. Serializers see the headers that
        ``inject`` has returned, in one list, which they may change.

        Returns:
            The record; its draft if a serializer has returned an awaitable.
        """
        name = topic if type(topic) is str and topic else topic_name(topic)
        if partition is not None and (type(partition) is not int or partition < 0):
            check_partition(partition)
        if timestamp is None:
            timestamp = self._wall_ns() // 1_000_000
        elif type(timestamp) is not int or not 0 <= timestamp < _TIME_END:
            _refuse_timestamp(timestamp)
        if self._inject is not None:
            headers = self._inject(name, headers)
        pairs = list(_plain_headers(headers)) if headers else []
        of_key, of_value = self._of_key, self._of_value
        if isinstance(topic, Topic):
            of_key, of_value = self._parts_of(topic)
        if key is not None:
            key = of_key.start(key, name, pairs)
            if isinstance(key, _Pending):
                return Draft(name, timestamp, key, value, pairs, of_value)
        if value is not None:
            value = of_value.start(value, name, pairs)
            if isinstance(value, _Pending):
                return Draft(name, timestamp, key, value, pairs, of_value)
        # Checked again, for what the serializers have added.
        return timestamp, key, value, _plain_headers(pairs) if pairs else ()

    def _parts_of(self, topic: Topic[Any, Any]) -> tuple[_Part, _Part]:
        parts = self._topics.get(topic)
        if (
            parts is None
            or parts[0].serializer is not topic.key
            or parts[1].serializer is not topic.value
        ):
            if len(self._topics) >= _MOST_TOPICS:
                self._topics.clear()  # topics that are made for one record each
            parts = (
                _Part.of("key", topic.key, topic.name),
                _Part.of("value", topic.value, topic.name),
            )
            self._topics[topic] = parts
        return parts


def _is_awaitable(result: object) -> TypeGuard[Awaitable[object]]:
    # Futures, and the coroutines of compiled code, have types of their own.
    return type(result) is CoroutineType or hasattr(result, "__await__")


def _as_bytes(
    what: str, value: object, serialize: Callable[..., object] | None
) -> bytes | None:
    if value is None:
        return None
    if serialize is not None:
        value = serialize(value)
        if value is None:
            return None
    if isinstance(value, bytes):
        return value
    return _copied(what, value, serialize is not None, None)


def _copied(
    what: str,
    value: object,
    is_serialized: bool,  # noqa: FBT001
    topic: str | None,
) -> bytes:
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if is_serialized and type(value) is CoroutineType:
        from kafkaio._config.serdes import returned_coroutine

        value.close()
        raise returned_coroutine(f"{what}_serializer", "serialize")
    option = f"{what}_serializer"
    if topic is not None:
        option = f"{what}= of the topic {topic!r}"
    hint = f"returned by {option}" if is_serialized else f"set {option} for other types"
    raise ArgumentTypeError(
        f"{what} must be bytes, bytearray, memoryview or None, "
        f"not {type_name(value)}; {hint}"
    )


def _refuse_timestamp(timestamp: object) -> None:
    if type(timestamp) is not int:
        raise ArgumentTypeError(
            f"timestamp must be int milliseconds or None, not {type_name(timestamp)}"
        )
    raise ArgumentValueError(
        f"timestamp must be from 0 to {_TIME_END - 1} milliseconds: {timestamp}"
    )


def _plain_headers(headers: object) -> tuple[Header, ...]:
    if type(headers) is tuple or type(headers) is list:
        return tuple([_plain_header(pair) for pair in headers])
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not hasattr(pairs, "__iter__"):
        raise ArgumentTypeError(
            f"headers must be a sequence of (name, value) or a mapping, "
            f"not {type_name(headers)}"
        )
    return tuple(_plain_header(pair) for pair in pairs)


def _plain_header(pair: object) -> Header:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentTypeError(f"a header must be a pair (name, value), not {pair!r}")
    name, value = pair
    if type(name) is str and name.isascii() and type(value) is bytes:
        return name, value
    if not isinstance(name, str):
        raise ArgumentTypeError(f"a header's name must be str, not {type_name(name)}")
    if not name.isascii():
        _check_unicode(name)
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    if value is not None and not isinstance(value, bytes):
        raise ArgumentTypeError(f"the value of header {name!r} must be bytes or None")
    return name, value


def _check_unicode(name: str) -> None:
    # A str may hold lone surrogates, which UTF-8 cannot encode.
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError(
            f"the header name {name!r} is not Unicode text"
        ) from error
