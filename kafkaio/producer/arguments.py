"""Checking what users pass, before anything is queued."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._machines.accumulator import PlainRecord
from kafkaio._runtime.clock import wall_ms
from kafkaio.config import ProducerConfig, Serializer
from kafkaio.types import Header, Headers

__all__ = ["RecordMaker", "check_destination"]

#: The first timestamp that a record cannot have.
_NO_TIME = 2**63 - 1


class RecordMaker:
    """Turns what users pass into records, with the serializers of a producer.

    None stays None: a record without a key or a tombstone never meets a serializer.
    """

    __slots__ = ("_serialize_key", "_serialize_value")

    def __init__(self, config: ProducerConfig) -> None:
        self._serialize_key = config.key_serializer
        self._serialize_value = config.value_serializer

    def make(
        self, key: object, value: object, headers: Headers, timestamp: int | None
    ) -> PlainRecord:
        """Return the record.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: the timestamp, or a header's name, cannot be written.
            Exception: whatever a serializer raises.
        """
        if type(value) is not bytes or self._serialize_value is not None:
            value = _as_bytes("value", value, self._serialize_value)
        if key is not None:
            key = _as_bytes("key", key, self._serialize_key)
        if timestamp is None:
            timestamp = wall_ms()
        elif type(timestamp) is not int:
            raise TypeError(
                f"timestamp must be int milliseconds or None, not {_name(timestamp)}"
            )
        elif not 0 <= timestamp < _NO_TIME:
            raise ValueError(
                f"timestamp must be from 0 to {_NO_TIME - 1} milliseconds: {timestamp}"
            )
        plain = _plain_headers(headers) if headers else ()
        return timestamp, key, value, plain


def check_destination(topic: object, partition: object) -> None:
    """Check where a record is to go.

    Raises:
        TypeError: the topic is no str, or the partition no int.
        ValueError: the topic is empty, or the partition negative.
    """
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {_name(topic)}")
    if not topic:
        raise ValueError("topic must not be empty")
    if partition is None:
        return
    if type(partition) is not int:
        raise TypeError(f"partition must be int or None, not {_name(partition)}")
    if partition < 0:
        raise ValueError(f"partition must not be negative: {partition}")


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
    raise TypeError(
        f"{what} must be bytes, bytearray, memoryview or None, not {_name(value)}{hint}"
    )


def _plain_headers(headers: object) -> tuple[Header, ...]:
    if type(headers) is tuple or type(headers) is list:
        return tuple([_plain_header(pair) for pair in headers])
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not hasattr(pairs, "__iter__"):
        raise TypeError(
            f"headers must be a sequence of (name, value) or a mapping, "
            f"not {_name(headers)}"
        )
    return tuple(_plain_header(pair) for pair in pairs)


def _plain_header(pair: object) -> Header:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"a header must be a pair (name, value), not {pair!r}")
    name, value = pair
    if type(name) is str and name.isascii() and type(value) is bytes:
        return name, value
    if not isinstance(name, str):
        raise TypeError(f"a header's name must be str, not {_name(name)}")
    if not name.isascii():
        _check_unicode(name)
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"the value of header {name!r} must be bytes or None")
    return name, value


def _check_unicode(name: str) -> None:
    # A str may hold lone surrogates, which UTF-8 has no bytes for.
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the header name {name!r} is not Unicode text") from error


def _name(value: object) -> str:
    return type(value).__name__
