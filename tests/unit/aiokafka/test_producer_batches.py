"""`BatchBuilder` beside that of aiokafka: the same sizes, the same limit."""

from __future__ import annotations

import json

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder as Theirs
from hypothesis import given, strategies as st

from kafkaio.aiokafka.producer.message_accumulator import BatchBuilder

FIELDS = st.none() | st.binary(max_size=300)
RECORDS = st.tuples(
    st.integers(0, 2**45),
    FIELDS,
    FIELDS,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))),
)


@given(limit=st.integers(61, 2_000), records=st.lists(RECORDS, max_size=20))
def test_it_takes_what_aiokafkas_takes(
    limit: int,
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]],
) -> None:
    ours, theirs = BatchBuilder(limit, None), Theirs(limit, 0)
    for timestamp, key, value, headers in records:
        record = {"timestamp": timestamp, "key": key, "value": value}
        taken = ours.append(**record, headers=headers)
        wanted = theirs.append(**record, headers=headers)
        assert (taken is None) == (wanted is None)
        if taken is not None and wanted is not None:
            assert taken.offset == wanted.offset
            assert taken.size == wanted.size
            assert taken.timestamp == wanted.timestamp == timestamp
            assert taken.crc == wanted.crc
        assert ours.size() == theirs.size()
        assert ours.record_count() == theirs.record_count()
        assert ours.closed() == theirs.closed()


@given(limit=st.integers(61, 2_000), values=st.lists(st.binary(max_size=300)))
def test_its_limit_is_aiokafkas(limit: int, values: list[bytes]) -> None:
    ours, theirs = BatchBuilder(limit, None), Theirs(limit, 0)
    for value in values:
        taken = ours.append(timestamp=1, key=None, value=value)
        wanted = theirs.append(timestamp=1, key=None, value=value)
        assert (taken is None) == (wanted is None)
    # And to the byte: a batch that would be full is not filled.
    full = ours.size()
    for most in (full - 1, full, full + 1):
        again = BatchBuilder(most, None), Theirs(most, 0)
        for value in values:
            for batch in again:
                batch.append(timestamp=1, key=None, value=value)
        assert again[0].record_count() == again[1].record_count()


def test_a_record_that_does_not_fit_closes_it() -> None:
    batch = BatchBuilder(100, None)
    assert batch.append(timestamp=1, key=None, value=b"x" * 500) is not None
    assert batch.append(timestamp=1, key=None, value=b"") is None
    assert batch.closed()


def test_a_closed_one_takes_nothing() -> None:
    batch = BatchBuilder(1_000, None)
    batch.close()
    batch.close()
    assert batch.append(timestamp=1, key=b"k", value=b"v") is None
    assert batch.record_count() == 0


def test_serializers_are_called_for_none_too() -> None:
    def dumps(given: object) -> bytes:
        return json.dumps(given).encode()

    batch = BatchBuilder(1_000, None, key_serializer=dumps, value_serializer=dumps)
    theirs = Theirs(1_000, 0, key_serializer=dumps, value_serializer=dumps)
    for each in (batch, theirs):
        assert each.append(timestamp=1, key=None, value={"a": 1}) is not None
    assert batch.size() == theirs.size()


@pytest.mark.parametrize("wrong", [{"key": "k"}, {"value": 1}, {"timestamp": "now"}])
def test_a_wrong_argument_changes_nothing(wrong: dict[str, object]) -> None:
    for batch in (BatchBuilder(1_000, None), Theirs(1_000, 0)):
        record = {"timestamp": 1, "key": b"k", "value": b"v"} | wrong
        before = batch.size()
        with pytest.raises(TypeError):
            batch.append(**record)  # type: ignore[arg-type]  # wrong types, on purpose
        assert batch.size() == before
        assert batch.record_count() == 0


def test_fractions_of_a_millisecond_are_cut() -> None:
    for batch in (BatchBuilder(1_000, None), Theirs(1_000, 0)):
        taken = batch.append(timestamp=1.99, key=b"k", value=b"v")
        assert taken is not None
        assert taken.timestamp == 1


def test_bytes_that_change_later_are_copied() -> None:
    batch = BatchBuilder(1_000, None)
    value = bytearray(b"before")
    batch.append(timestamp=1, key=memoryview(b"k"), value=value)
    value[:] = b"after!"
    (record,) = batch._records
    assert (record.key, record.value) == (b"k", b"before")
