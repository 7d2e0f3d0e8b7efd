"""The cursor over a batch, and lists of keys and values, on both codecs."""

from __future__ import annotations

import importlib
import operator
import sys
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio._records._layout import Origin
from kafkaio.errors import CorruptRecord
from tests.unit.records.strategies import origin, record, record_lists
from tests.unit.records.test_codecs import (
    CORRUPT,
    damaged_sections,
    law,
    origins,
    write,
)

DATA = b"".join(record(value=b"%d" % n, offset_delta=n) for n in range(6))


def cursor_class(codec: ModuleType) -> type:
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._cursor").RecordCursor
    return codec.RecordCursor


def cursor(codec: ModuleType, data: bytes = DATA, count: int = 6, **changes: object):
    return cursor_class(codec)(data, 0, count, origin(**changes), 900)


@law
@given(records=record_lists, start=st.integers(0, 140))
def test_gives_what_decoding_gives(
    codec: ModuleType, records: list, start: int
) -> None:
    data, base = write(codec, records)
    args = (data, 0, len(records), origin(base_timestamp=base, start_offset=start))
    expected = codec.decode_records(*args)
    reader = cursor_class(codec)(*args, 900)
    assert reader.remaining == operator.length_hint(reader) == len(expected)
    assert list(reader) == expected
    assert (reader.remaining, reader.next_offset) == (0, 900)
    assert codec.decode_keys(*args) == [made.key for made in expected]
    assert codec.decode_values(*args) == [made.value for made in expected]


def test_next_offset_follows_what_is_handed_out(codec: ModuleType) -> None:
    data = b"".join(record(offset_delta=delta) for delta in (3, 4, 70))
    reader = cursor(codec, data, 3, start_offset=50)
    seen = [(reader.remaining, reader.next_offset)]
    for _ in reader:
        seen.append((reader.remaining, reader.next_offset))
    assert seen == [(3, 50), (2, 104), (1, 105), (0, 900)]
    assert next(reader, None) is None


def test_nothing_left_after_the_start(codec: ModuleType) -> None:
    reader = cursor(codec, start_offset=106)
    assert (reader.remaining, reader.next_offset, list(reader)) == (0, 900, [])


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (2, 2), (6, 6), (9, 6)])
def test_take(codec: ModuleType, limit: int, count: int) -> None:
    values = [b"%d" % n for n in range(count)]
    reader = cursor(codec)
    assert [made.value for made in reader.take(limit)] == values
    assert reader.remaining == 6 - count
    assert cursor(codec).take_values(limit) == values
    assert cursor(codec).take_keys(limit) == [None] * count


def test_takes_go_on_where_the_last_ended(codec: ModuleType) -> None:
    reader = cursor(codec)
    assert next(reader).value == b"0"
    assert reader.take_values(2) == [b"1", b"2"]
    assert reader.next_offset == 103
    assert [made.offset for made in reader.take(2)] == [103, 104]
    assert reader.take_keys(2) == [None]
    assert reader.next_offset == 900


def test_stop(codec: ModuleType) -> None:
    data = bytes(bytearray(DATA))
    before = sys.getrefcount(data)
    reader = cursor(codec, data)
    next(reader)
    reader.stop()
    assert sys.getrefcount(data) == before
    assert (reader.remaining, reader.next_offset) == (0, 101)
    assert list(reader) == reader.take(3) == reader.take_values(3) == []


def test_repr(codec: ModuleType) -> None:
    assert repr(cursor(codec)) == "<RecordCursor at 0 | 6 remaining>"


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_records_are_found_before_the_first_is_given(
    twins: tuple[ModuleType, ModuleType], case: str
) -> None:
    data, count, changes = CORRUPT[case]
    messages = set()
    for codec in twins:
        args = (data, 0, count, origin(**changes))
        for read in (
            codec.decode_records,
            codec.decode_keys,
            codec.decode_values,
            lambda *args, codec=codec: cursor_class(codec)(*args, 900),
        ):
            with pytest.raises(CorruptRecord) as caught:
                read(*args)
            messages.add(str(caught.value))
    assert len(messages) == 1


def story(codec: ModuleType, data: bytes, count: int, at: Origin) -> object:
    try:
        reader = cursor_class(codec)(data, 0, count, at, 900)
    except CorruptRecord as error:
        return str(error)
    return [(made, reader.remaining, reader.next_offset) for made in reader]


@law
@given(section=damaged_sections(), at=origins)
def test_twins_behave_alike_in_sequence(
    twins: tuple, section: tuple[bytes, int], at: Origin
) -> None:
    data, count = section
    pure, compiled = (story(codec, data, count, at) for codec in twins)
    assert pure == compiled
