"""Records as they are shown: as they came, or with a decoded key and value."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Final, Protocol

from kafkaio.types import Header, Record, TimestampType

#: An encoder made once: json.dumps makes one for each call with options.
write_json: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


class ShownRecord(Protocol):
    """What filters and formats know of a record."""

    @property
    def topic(self) -> str:
        """Its topic."""

    @property
    def partition(self) -> int:
        """Its partition."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def timestamp(self) -> int:
        """Its timestamp in milliseconds."""

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set it."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that wrote it."""

    @property
    def headers(self) -> Sequence[Header]:
        """Its headers."""

    @property
    def key(self) -> bytes | None:
        """Its key."""

    @property
    def value(self) -> bytes | None:
        """Its value."""


class Decoded:
    """A decoded key or value.

    Args:
        tree: what JSON shows of it.
        schema_id: the id of its schema, or its GUID; None without a schema.
        is_text: whether text shows a string itself, and not in JSON's quotes.
    """

    __slots__ = ("is_text", "schema_id", "tree")

    def __init__(
        self, tree: object, schema_id: int | str | None = None, *, is_text: bool = False
    ) -> None:
        self.tree = tree
        self.schema_id = schema_id
        self.is_text = is_text

    @property
    def text(self) -> bytes:
        """What formats and filters see of it."""
        if self.is_text:
            return str(self.tree).encode()
        return utf_8(write_json(self.tree))


class DecodedRecord:
    """A record whose key or value is decoded; implements `ShownRecord`.

    Args:
        raw: the record.
        key: its decoded key; None if keys are not decoded, or it has none.
        value: likewise.

    Attributes:
        raw: as above.
        decoded_key: as above.
        decoded_value: as above.
    """

    __slots__ = ("decoded_key", "decoded_value", "raw")

    def __init__(self, raw: Record, key: Decoded | None, value: Decoded | None) -> None:
        self.raw = raw
        self.decoded_key = key
        self.decoded_value = value

    @property
    def key(self) -> bytes | None:
        """The key, as text if it is decoded."""
        return self.raw.key if self.decoded_key is None else self.decoded_key.text

    @property
    def value(self) -> bytes | None:
        """The value, as text if it is decoded."""
        decoded = self.decoded_value
        return self.raw.value if decoded is None else decoded.text

    @property
    def schema_ids(self) -> dict[str, object]:
        """The ids of the schemas that JSON shows, by their keys there."""
        sides = {"key": self.decoded_key, "value": self.decoded_value}
        return {
            f"{name}_schema_id": side.schema_id
            for name, side in sides.items()
            if side is not None and side.schema_id is not None
        }

    @property
    def topic(self) -> str:
        """The topic."""
        return self.raw.topic

    @property
    def partition(self) -> int:
        """The partition."""
        return self.raw.partition

    @property
    def offset(self) -> int:
        """The offset."""
        return self.raw.offset

    @property
    def timestamp(self) -> int:
        """The timestamp in milliseconds."""
        return self.raw.timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set it."""
        return self.raw.timestamp_type

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that wrote the record."""
        return self.raw.leader_epoch

    @property
    def headers(self) -> Sequence[Header]:
        """The headers."""
        return self.raw.headers


def tree_of(value: object) -> object:
    """Return what JSON shows of a decoded value.

    Bytes are text if they are UTF-8, else ``{"base64": ...}``; decimals, times and ids
    are strings, and so are floats that JSON has not.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _FLOATS.get(value, "NaN")
    if isinstance(value, bytes):
        return shown_bytes(value)
    if isinstance(value, Mapping):
        return {str(name): tree_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [tree_of(each) for each in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)  # Decimal, UUID


_FLOATS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def utf_8(text: str) -> bytes:
    """Return JSON as bytes; a lone surrogate, which JSON may escape, stays escaped."""
    return text.encode("utf-8", "backslashreplace")


def shown_bytes(data: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as JSON shows them: text, or ``{"base64": ...}``."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
