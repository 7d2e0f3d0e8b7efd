"""Records as JSON: an object of kafkaio's own, and the envelope of kcat.

Bytes that are not UTF-8 are ``{"base64": ...}``.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from kafkaio._cli.records.decoded import (
    DecodedRecord,
    ShownRecord,
    shown_bytes,
    write_json,
)
from kafkaio._cli.records.input import InputError, InputRecord
from kafkaio._cli.records.sides import TEXTS, Sides
from kafkaio._records._impl import ShareRecord
from kafkaio.types import TimestampType

_TYPES: Final = {
    TimestampType.NONE: "none",
    TimestampType.CREATE: "create",
    TimestampType.LOG_APPEND: "append",
}
T = TypeVar("T")


def json_of(record: ShownRecord) -> str:
    """Return a record as one line of JSON, whose schema is ``schemas/consume.json``."""
    key, value = _sides(record)
    line: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": _TYPES[record.timestamp_type],
        "key": key,
        "value": value,
        "headers": [
            {"name": name, "value": shown_bytes(value)}
            for name, value in record.headers
        ],
        "leader_epoch": record.leader_epoch,
    }
    raw: object = record
    if isinstance(record, DecodedRecord):
        line |= record.schema_ids
        raw = record.raw
    if isinstance(raw, ShareRecord):
        line["delivery_count"] = raw.delivery_count
    return write_json(line)


def _sides(record: ShownRecord) -> tuple[object, object]:
    """Return the key and the value as JSON shows them."""
    if not isinstance(record, DecodedRecord):
        return shown_bytes(record.key), shown_bytes(record.value)
    key, value = record.decoded_key, record.decoded_value
    return (
        shown_bytes(record.key) if key is None else key.tree,
        shown_bytes(record.value) if value is None else value.tree,
    )


def envelope_of(record: ShownRecord) -> str:
    """Return a record in the envelope that kcat prints with ``-J``.

    ``broker`` is null: a consumer does not keep which broker a record came from.
    """
    # The order of the keys is kcat's; it leaves "headers" out if there are none.
    envelope: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "tstype": _TYPES[record.timestamp_type],
        "ts": record.timestamp,
        "broker": None,
    }
    if record.headers:
        pairs = ((name, shown_bytes(value)) for name, value in record.headers)
        envelope["headers"] = [each for pair in pairs for each in pair]
    envelope["key"], envelope["payload"] = _sides(record)
    if isinstance(record, DecodedRecord):
        envelope |= record.schema_ids
    return write_json(envelope)


class JsonReader:
    """Reads lines of JSON as `json_of` writes them; implements `InputReaderPort`.

    Every key may be missing. Offsets, timestamp types and leader epochs are ignored.
    Headers may also be an object of names and values.

    Args:
        has_json: whether keys and values may be any JSON, which is kept as text, for
            what encodes it.
    """

    def __init__(self, has_json: Sides[str] | None = None) -> None:
        self._has_json = has_json or Sides()
        self._rest = b""
        self._line = 0

    def feed(self, data: bytes) -> Iterator[InputRecord]:
        """Yield the records of the lines that end in the input so far."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from self._records(lines)

    def finish(self) -> Iterator[InputRecord]:
        """Yield the record of the last line, if it has no end."""
        lines, self._rest = [self._rest], b""
        yield from self._records(lines)

    def _records(self, lines: Iterable[bytes]) -> Iterator[InputRecord]:
        for line in lines:
            self._line += 1
            # A file may end with blank lines.
            if not line.strip():
                continue
            try:
                found = _written(json.loads(line), self._has_json)
            except ValueError as error:
                raise InputError(f"line {self._line}: {error}") from None
            found.line = self._line
            yield found


#: Keys of a consumed record that a producer cannot set.
_IGNORED: Final = frozenset(
    {
        *("offset", "timestamp_type", "leader_epoch", "delivery_count"),
        *("key_schema_id", "value_schema_id"),
    }
)
_READ: Final = frozenset({"topic", "partition", "timestamp", "key", "value", "headers"})


def _written(line: object, has_json: Sides[str]) -> InputRecord:
    if not isinstance(line, dict):
        raise InputError("not a JSON object")
    # A misspelt key would send a record without its key or value.
    if unknown := sorted(line.keys() - _READ - _IGNORED):
        raise InputError(f"unknown key {unknown[0]!r}")
    # A consumed record without a timestamp has -1: the producer then sets one.
    timestamp = _optional(line, "timestamp", int)
    return InputRecord(
        topic=_optional(line, "topic", str),
        partition=_optional(line, "partition", int),
        key=_part(line, "key", has_json.key),
        value=_part(line, "value", has_json.value),
        headers=_headers(line.get("headers", ())),
        timestamp=None if timestamp == -1 else timestamp,
    )


def _part(line: dict[str, object], name: str, language: str | None) -> bytes | None:
    """Return a key or a value; as text of JSON, if it is to be encoded."""
    value = line.get(name)
    if language is None or value is None:
        return _to_bytes(value, name)
    is_text = language in TEXTS and isinstance(value, str)
    return (str(value) if is_text else write_json(value)).encode()


def _optional(line: dict[str, object], name: str, kind: type[T]) -> T | None:
    value = line.get(name)
    # bool is a subclass of int.
    if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    raise InputError(f"{name} is {write_json(value)}, not of type {kind.__name__}")


def _to_bytes(value: object, name: str) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str() as text, **rest} if not rest:
            try:
                return b64decode(text, validate=True)
            except ValueError:
                raise InputError(f"{name} is not base64: {text[:40]!r}") from None
    raise InputError(f'{name} is neither null, text nor {{"base64": ...}}')


def _headers(value: object) -> list[tuple[str, bytes | None]]:
    if isinstance(value, dict):
        return [(name, _to_bytes(v, f"header {name}")) for name, v in value.items()]
    if not isinstance(value, list | tuple):
        raise InputError("headers is not a list")
    found = []
    for each in value:
        match each:
            case {"name": str() as name, **rest}:
                found.append((name, _to_bytes(rest.get("value"), f"header {name}")))
            case _:
                raise InputError('a header is not {"name": ..., "value": ...}')
    return found
