"""Records from the arguments of calls, which are checked before anything is queued."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaio._arguments import check_partition, check_topic, type_name
from kafkaio._config import ProducerConfig, Serializer
from kafkaio._machines.accumulator import PlainRecord
from kafkaio._runtime.clock import wall_clock
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import Header, Headers

#: Timestamps are less than this.
_TIME_END = 2**63 - 1


class RecordMaker:
    """Makes records from arguments, with the serializers of a producer.

    None stays None: a serializer is called neither for a record without a key nor for
    a tombstone.

    Args:
        config: the serializers.
        inject: returns the headers to write for a topic and the headers of a record;
            None to write them as they are.
    """

    __slots__ = ("_inject", "_serialize_key", "_serialize_value", "_wall_ns")

    def __init__(
        self,
        config: ProducerConfig,
        inject: Callable[[str, Headers], Headers] | None = None,
    ) -> None:
        self._serialize_key = config.key_serializer
        self._serialize_value = config.value_serializer
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
        """Check where a record is to go, and return it.

        Raises:
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: the topic is empty, the partition negative, or the
                timestamp or the name of a header impossible.
            Exception: a serializer raised it.
        """
        # Each condition saves the call where the argument is right, as nearly always.
        if type(topic) is not str or not topic:
            check_topic(topic)
        if partition is not None and (type(partition) is not int or partition < 0):
            check_partition(partition)
        if self._inject is not None:
            headers = self._inject(topic, headers)
        if type(value) is not bytes or self._serialize_value is not None:
            value = _as_bytes("value", value, self._serialize_value)
        if key is not None and (
            type(key) is not bytes or self._serialize_key is not None
        ):
            key = _as_bytes("key", key, self._serialize_key)
        if timestamp is None:
            timestamp = self._wall_ns() // 1_000_000
        elif type(timestamp) is not int:
            raise ArgumentTypeError(
                "timestamp must be int milliseconds or None, "
                f"not {type_name(timestamp)}"
            )
        elif not 0 <= timestamp < _TIME_END:
            raise ArgumentValueError(
                f"timestamp must be from 0 to {_TIME_END - 1} milliseconds: {timestamp}"
            )
        plain = _plain_headers(headers) if headers else ()
        return timestamp, key, value, plain


def _as_bytes(what: str, value: object, serialize: Serializer | None) -> bytes | None:
    if value is None:
        return None
    if serialize is not None:
        value = serialize(value)
        if value is None:
            return None
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    hint = f"; set {what}_serializer for other types" if serialize is None else ""
    raise ArgumentTypeError(
        f"{what} must be bytes, bytearray, memoryview or None, "
        f"not {type_name(value)}{hint}"
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
