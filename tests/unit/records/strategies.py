"""Records as hypothesis makes them, and a slow second writer to hold ours against."""

from __future__ import annotations

from hypothesis import strategies as st

from kafkaio._records._layout import Origin
from kafkaio.types import TimestampType

MAX_INT64 = 2**63 - 1

fields = st.none() | st.binary(max_size=80) | st.binary(min_size=60, max_size=200)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
headers = st.lists(
    st.tuples(names, st.none() | st.binary(max_size=20)), max_size=4
).map(tuple)
timestamps = st.integers(-1, MAX_INT64 - 1) | st.integers(
    1_700_000_000_000, 1_700_000_100_000
)
plain_records = st.tuples(timestamps, fields, fields, headers)
record_lists = st.lists(plain_records, min_size=1, max_size=30)


def varint(number: int) -> bytes:
    raw = number * 2 if number >= 0 else -number * 2 - 1
    out = []
    while raw >= 128:
        out.append(raw % 128 + 128)
        raw //= 128
    return bytes([*out, raw])


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    *,
    timestamp_delta: int = 0,
    offset_delta: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"v",
    headers: bytes = b"\0",
) -> bytes:
    body = (
        b"\0"
        + varint(timestamp_delta)
        + varint(offset_delta)
        + field(key)
        + field(value)
        + headers
    )
    return varint(len(body)) + body


def origin(**changes: object) -> Origin:
    return Origin(
        topic="orders",
        partition=3,
        start_offset=0,
        base_offset=100,
        last_offset_delta=1_000_000,
        base_timestamp=1_700_000_000_000,
        log_append_time=None,
        timestamp_type=TimestampType.CREATE,
        leader_epoch=5,
    )._replace(**changes)
