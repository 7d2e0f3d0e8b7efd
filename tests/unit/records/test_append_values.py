"""Appending a list of values in one call, on both codecs."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import UsageError
from tests.unit.records.strategies import fields, timestamps
from tests.unit.records.test_codecs import NOW, law


@law
@given(
    first=st.none() | timestamps,
    values=st.lists(fields, max_size=30),
    timestamp=timestamps,
    target=st.integers(0, 2_000),
    start=st.integers(0, 35),
)
def test_is_as_if_appended_one_by_one(
    codec: ModuleType,
    first: int | None,
    values: list,
    timestamp: int,
    target: int,
    start: int,
) -> None:
    bulk, single = codec.RecordWriter(target), codec.RecordWriter(target)
    if first is not None:
        for writer in (bulk, single):
            writer.try_append(first, b"k", b"v")
    appended = 0
    for value in values[start:]:
        if single.try_append(timestamp, None, value) < 0:
            break
        appended += 1
    assert bulk.append_values(timestamp, values, start) == appended
    for name in ("count", "size_bytes", "first_timestamp", "max_timestamp"):
        assert getattr(bulk, name) == getattr(single, name)
    assert bulk.section() == single.section()


def test_goes_on_in_the_next_batch(codec: ModuleType) -> None:
    values = [b"%03d" % n for n in range(100)]
    start, sizes = 0, []
    while start < len(values):
        writer = codec.RecordWriter(200)
        start += writer.append_values(NOW, values, start)
        sizes.append(writer.count)
    assert sum(sizes) == 100
    assert len(set(sizes[:-1])) == 1


def test_wrong_value(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    with pytest.raises(TypeError, match="a value is bytes or None, not str"):
        writer.append_values(NOW, [b"a", None, "b", b"c"])
    assert writer.count == 2


@pytest.mark.parametrize("timestamp", [-2, 2**63, 2**63 - 1])
def test_impossible_timestamp(codec: ModuleType, timestamp: int) -> None:
    writer = codec.RecordWriter(1_000)
    with pytest.raises(UsageError, match="timestamp"):
        writer.append_values(timestamp, [b"a"])
    assert writer.count == 0


def test_start_before_the_first(codec: ModuleType) -> None:
    with pytest.raises(IndexError, match="-1"):
        codec.RecordWriter(1_000).append_values(NOW, [b"a"], -1)


def test_closed(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    writer.append_values(NOW, [b"a"])
    writer.close()
    assert writer.append_values(NOW, [b"b"]) == 0
