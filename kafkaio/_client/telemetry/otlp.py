"""Encodes metrics as OTLP: the message ``MetricsData`` of OpenTelemetry, in protobuf.

A push needs few of the messages and field types, so this writes them itself, and the
client needs no protobuf library (ADR-0032). The numbers of the fields are those of
``opentelemetry/proto/metrics/v1/metrics.proto``; in that format they never change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from kafkaio._named_tuple import NamedTuple

#: Names and values, sorted by name.
Attributes: TypeAlias = tuple[tuple[str, str], ...]

_DELTA: Final = b"\x10\x01"  # field 2, a varint: aggregation_temporality
_CUMULATIVE: Final = b"\x10\x02"
_MONOTONIC: Final = b"\x18\x01"  # field 3, a varint: is_monotonic
_LENGTH_DELIMITED: Final = 2
# Field 2, start_time_unix_nano; field 3, time_unix_nano; field 4, as_double.
_START: Final = struct.Struct("<BQ")
_TIME_AND_VALUE: Final = struct.Struct("<BQBd")


class Point(NamedTuple):
    """The value of one metric.

    Attributes:
        name: name of the metric.
        value: the value.
        attributes: what distinguishes it, such as a topic.
        is_sum: whether it is a sum that only grows; otherwise it is a gauge.
    """

    name: str
    value: float
    attributes: Attributes = ()
    is_sum: bool = False


class Times(NamedTuple):
    """The times of the values, in nanoseconds since the Unix epoch.

    Attributes:
        start: the time from which sums count.
        now: when the values were read.
        is_delta: whether ``start`` is the time of the previous push.
    """

    start: int
    now: int
    is_delta: bool


def encode(points: Iterable[Point], times: Times, resource: Mapping[str, str]) -> bytes:
    """Encode metrics.

    Args:
        points: the values; several with the same name are points of one metric.
        times: when they were read.
        resource: attributes of the whole client, such as its group.

    Returns:
        A message ``MetricsData``.
    """
    metrics: dict[tuple[str, bool], list[bytes]] = {}
    for point in points:
        data = _point(point, times)
        metrics.setdefault((point.name, point.is_sum), []).append(data)
    kind = (_DELTA if times.is_delta else _CUMULATIVE) + _MONOTONIC
    scope = b"".join(
        _field(2, _metric(name, b"".join(data), kind if is_sum else None))
        for (name, is_sum), data in metrics.items()
    )
    about = _attributes(1, tuple(sorted(resource.items())))
    return _field(1, _field(1, about) + _field(2, scope))


def _metric(name: str, points: bytes, kind: bytes | None) -> bytes:
    data = _field(5, points) if kind is None else _field(7, points + kind)
    return _name(name) + data


def _point(point: Point, times: Times) -> bytes:
    start = _START.pack(0x11, times.start) if point.is_sum else b""
    value = _TIME_AND_VALUE.pack(0x19, times.now, 0x21, point.value)
    return _field(1, start + value + _attributes(7, point.attributes))


@lru_cache(maxsize=1024)
def _name(name: str) -> bytes:
    return _field(1, name.encode())


@lru_cache(maxsize=1024)
def _attributes(number: int, attributes: Attributes) -> bytes:
    """Encode a repeated field ``KeyValue``, whose values are strings."""
    return b"".join(
        _field(number, _field(1, name.encode()) + _field(2, _field(1, value.encode())))
        for name, value in attributes
    )


def _field(number: int, data: bytes) -> bytes:
    size = len(data)
    tag = number << 3 | _LENGTH_DELIMITED
    if size < 0x80:
        return bytes((tag, size)) + data
    return bytes((tag,)) + _varint(size) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
