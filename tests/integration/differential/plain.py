"""Answers as plain values that two brokers can be compared by.

What a broker chooses by itself gets a stand-in, numbered in the order in which it was
first seen; a script uses the stand-ins, and each broker is sent what it chose. What
says nothing about behaviour is left out; ``LEFT_OUT`` tells why.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from kafkaio._records._layout import BATCH_HEADER, LENGTH_END
from kafkaio.protocol._message import Struct
from kafkaio.protocol.messages.fetch import FetchableTopicResponse, FetchResponse

#: Fields that are not compared, and the reason.
LEFT_OUT: Final[Mapping[str, str]] = {
    "throttle_time_ms": "depends on the load, there are no quotas",
    "host": "an address",
    "port": "an address",
    "documentation": "for people",
    "log_append_time_ms": "the time of day",
    "finalized_features_epoch": "how far the metadata log is",
    "records_crc": "covers the producer id, which the broker chose",
}

#: For people: compared is only whether there is one, none, or an empty one.
_TEXTS: Final = frozenset({"error_message", "batch_index_error_message"})
#: Integers that a broker chooses; the negative ones have a meaning, as has session 0.
_CHOSEN: Final = frozenset({"producer_id", "session_id"})
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
# As Kafka writes its own kind, for classic members of a group of the other protocol.
_SHORT_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}$")
_NOBODY: Final = UUID(int=0)
_FIRST_UUID: Final = 0xABCDEF << 96
_FIRST_NUMBER: Final = 1_900_000_000
_HEADER: Final = struct.Struct(BATCH_HEADER)

Plain = Any  # dicts, lists and scalars: what a script asserts on, and what is printed


class Names:
    """The stand-ins for what one broker chose."""

    def __init__(self) -> None:
        self._real: dict[Any, Any] = {}
        self._stand_in: dict[Any, Any] = {}

    def copy(self) -> Names:
        """Return the same, to go back to."""
        names = Names()
        names._real, names._stand_in = dict(self._real), dict(self._stand_in)
        return names

    def stand_in(self, real: str | UUID | int, field: str = "") -> Any:
        """Return what stands for a value, new or not; numbers are told by field."""
        found = self.known(real, field)
        if found is None:
            number = len(self._real)
            if isinstance(real, UUID):
                found = UUID(int=_FIRST_UUID + number)
            elif isinstance(real, int):
                found = _FIRST_NUMBER + number
            else:
                found = f"<{number}>"
            self._real[found] = real
            self._stand_in[self._key(real, field)] = found
        return found

    def known(self, real: str | UUID | int, field: str = "") -> Any:
        """Return what stands for a value that was seen before, else None."""
        return self._stand_in.get(self._key(real, field))

    @staticmethod
    def _key(real: str | UUID | int, field: str) -> Any:
        return (field, real) if isinstance(real, int) else real

    def real(self, value: Any) -> Any:
        """Return what the broker calls what a stand-in, or anything else, means."""
        if isinstance(value, Struct):
            for field in value.SCHEMA:
                setattr(value, field.name, self.real(getattr(value, field.name)))
            return value
        if isinstance(value, list):
            return [self.real(one) for one in value]
        if isinstance(value, str | UUID | int):
            return self._real.get(value, value)
        return value

    def plain(self, value: Any, field: str = "") -> Plain:
        """Return an answer, or a part of one, as plain values."""
        if isinstance(value, FetchResponse):
            value = _merged(value)
        if isinstance(value, Struct):
            return {
                one.name: self.plain(getattr(value, one.name), one.name)
                for one in value.SCHEMA
                if one.name not in LEFT_OUT
            }
        if field == "aborted_transactions":
            # Whether nothing is told as null or as empty depends on where a reader of
            # several partitions had to stop; clients make the same of both.
            value = value or []
        if isinstance(value, list):
            # Java's maps have no order, so neither do the lists made from them.
            ordered = sorted(value, key=lambda one: repr(self._seen(one, field)))
            return [self.plain(one, field) for one in ordered]
        if field == "records" and isinstance(value, bytes | bytearray | memoryview):
            return [self.plain_batch(one) for one in _batches(bytes(value))]
        if isinstance(value, memoryview | bytearray):
            return bytes(value)
        if field in _TEXTS:
            return value and "<text>"
        if self._is_chosen(value, field):
            return self.stand_in(value, field)
        return value

    def plain_batch(self, batch: tuple[tuple[int, ...], bytes]) -> Plain:
        """Return a batch's header, but for its CRC, and its records."""
        header, records = batch
        base, length, epoch, magic, _, attributes, delta, *rest = header
        first, last, producer, producer_epoch, sequence, count = rest
        return {
            "offsets": (base, base + delta, count),
            "size": length,
            "epoch": (epoch, magic, attributes),
            "times": (first, last),
            "producer": (
                self.stand_in(producer, "producer_id") if producer >= 0 else producer,
                producer_epoch,
                sequence,
            ),
            "records": records,
        }

    def _seen(self, value: Any, field: str = "") -> Any:
        """Return a part of an answer without what has no stand-in yet, to sort by."""
        if isinstance(value, Struct):
            return [
                self._seen(getattr(value, one.name), one.name)
                for one in value.SCHEMA
                if one.name not in LEFT_OUT and one.name != "records"
            ]
        if isinstance(value, list):
            return sorted(repr(self._seen(one, field)) for one in value)
        if field in _TEXTS:
            return value and "<text>"
        if self._is_chosen(value, field):
            return str(self.known(value, field))
        return value

    def _is_chosen(self, value: Any, field: str) -> bool:
        if isinstance(value, UUID):
            return value != _NOBODY
        if isinstance(value, str):
            if field == "member_id" and _SHORT_UUID.match(value):
                return True
            return field == "cluster_id" or _UUID.search(value) is not None
        return value > 0 if field == "session_id" else field in _CHOSEN and value >= 0


def _merged(response: FetchResponse) -> FetchResponse:
    """Tell every topic once: Kafka begins it anew where another was between."""
    topics: dict[tuple[str, UUID], FetchableTopicResponse] = {}
    for one in response.responses:
        key = one.topic, one.topic_id
        merged = FetchableTopicResponse(topic=one.topic, topic_id=one.topic_id)
        topics.setdefault(key, merged).partitions += one.partitions
    response.responses = list(topics.values())
    return response


def _batches(data: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    at = 0
    while at + _HEADER.size <= len(data):
        header = _HEADER.unpack_from(data, at)
        end = at + LENGTH_END + header[1]
        if end > len(data):
            return  # cut off by a limit: a client drops it
        yield header, data[at + _HEADER.size : end]
        at = end


def without_disk(answer: Plain) -> Plain:
    """Leave out of what DescribeLogDirs tells where logs are, and how full that is."""
    (result,) = answer["results"]
    kept = {name: result[name] for name in ("error_code", "topics")}
    return {**answer, "results": [kept]}


def differences(ours: Plain, real: Plain, path: str = "") -> list[str]:
    """Tell where two plain values differ, a line for each place."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [
            line
            for name in ours
            for line in differences(ours[name], real[name], f"{path}.{name}")
        ]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        return [
            line
            for number, (one, other) in enumerate(zip(ours, real, strict=True))
            for line in differences(one, other, f"{path}[{number}]")
        ]
    if ours == real:
        return []
    return [f"{path}\n    embedded: {ours!r}\n    real:     {real!r}"]
