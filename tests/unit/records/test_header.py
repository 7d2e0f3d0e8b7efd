"""The header of a batch and the way from it to the records: the twins agree."""

from __future__ import annotations

import importlib
import struct
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio._records._layout import BATCH_HEADER
from kafkaio._records.batch import Compression, encode_batch
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType
from tests.unit.records.strategies import MAX_INT64
from tests.unit.records.test_codecs import NOW, law

NAMES = (
    "base_offset",
    "last_offset",
    "next_offset",
    "leader_epoch",
    "magic",
    "checksum",
    "compression",
    "timestamp_type",
    "is_transactional",
    "is_control",
    "has_delete_horizon",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
    "size_bytes",
)


def header_class(codec: ModuleType) -> type:
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._header").BatchHeader
    return codec.BatchHeader


def story(codec: ModuleType, data: bytes) -> object:
    try:
        header = header_class(codec)(data)
    except CorruptRecord as error:
        return str(error)
    told: list[object] = [getattr(header, name) for name in NAMES]
    told += [type(fact) for fact in told]
    told.append(header.origin("orders", 3, 5))
    told.append(header.computed_checksum())
    header.detach()
    told.append(header.computed_checksum())
    for position in (0, 61, len(data), len(data) + 1):
        try:
            cursor = header.cursor(data, position, "orders", 3, 5)
        except CorruptRecord as error:
            told.append(str(error))
        else:
            told += [cursor.remaining, cursor.next_offset, list(cursor)]
    return told


def ints(bits: int) -> st.SearchStrategy[int]:
    least = -(2 ** (bits - 1))
    return st.integers(least, -least - 1)


headers = st.tuples(
    ints(64) | st.integers(0, 1_000) | st.integers(MAX_INT64 - 9, MAX_INT64),
    ints(32),
    ints(32),
    st.integers(-128, 127),
    st.integers(0, 2**32 - 1),
    ints(16) | st.integers(0, 127),
    ints(32) | st.integers(0, 9),
    ints(64),
    ints(64),
    ints(64),
    ints(16),
    ints(32),
    ints(32) | st.integers(0, 9),
).map(lambda fields: struct.pack(BATCH_HEADER, *fields))


@law
@given(header=headers, rest=st.binary(max_size=30))
def test_twins_read_a_header_alike(twins: tuple, header: bytes, rest: bytes) -> None:
    pure, compiled = (story(codec, header + rest) for codec in twins)
    assert pure == compiled


@law
@given(
    count=st.integers(1, 4),
    compression=st.sampled_from(Compression),
    flip=st.none() | st.tuples(st.integers(0, 200), st.integers(1, 255)),
)
def test_twins_read_a_batch_alike(
    twins: tuple, count: int, compression: Compression, flip: tuple | None
) -> None:
    rows = [(NOW + n, b"k", b"v%d" % n, ()) for n in range(count)]
    data = bytearray(encode_batch(rows, base_offset=4, compression=compression))
    if flip is not None:
        data[flip[0] % len(data)] ^= flip[1]
    pure, compiled = (story(codec, bytes(data)) for codec in twins)
    assert pure == compiled


@pytest.mark.parametrize("size", [0, 1, 60])
def test_too_short(codec: ModuleType, size: int) -> None:
    with pytest.raises(CorruptRecord, match=f"a batch of {size} bytes"):
        header_class(codec)(bytes(size))


def test_cursor_of_a_batch_with_log_append_time(codec: ModuleType) -> None:
    data = bytearray(encode_batch([(NOW, None, b"v", ())]))
    data[22] |= 8
    header = header_class(codec)(bytes(data))
    (record,) = header.cursor(bytes(data), 61, "orders", 3, 0)
    assert header.timestamp_type is TimestampType.LOG_APPEND
    assert record.timestamp_type is TimestampType.LOG_APPEND
    assert record.timestamp == header.max_timestamp == NOW
