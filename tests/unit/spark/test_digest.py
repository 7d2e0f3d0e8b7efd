"""The digest of rows: independent of their order, and different for other rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from kafkaio.spark._digest import RowDigest
from kafkaio.spark._marker_state import RowSum

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("headers", HEADERS),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
Row = dict[str, Any]
small = st.binary(max_size=4)
rows = st.fixed_dictionaries(
    {
        "value": st.none() | small,
        "key": st.none() | small,
        "headers": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {"key": st.sampled_from("ab"), "value": st.none() | small}
            ),
            max_size=3,
        ),
        "topic": st.sampled_from(["one", "two"]),
        "partition": st.none() | st.integers(0, 3),
        "timestamp": st.none()
        | st.integers(0, 3).map(lambda second: datetime.fromtimestamp(second, UTC)),
    }
)


def digest(*batches: list[Row]) -> RowDigest:
    found = RowDigest()
    for batch in batches:
        found.add(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))
    return found


def canonical(row: Row) -> str:
    return repr(sorted(row.items()))


@given(st.lists(rows), st.randoms(), st.integers(0, 10))
def test_order_and_batches_do_not_matter(
    table: list[Row], random: Any, cut: int
) -> None:
    other = list(table)
    random.shuffle(other)
    one, two = digest(table), digest(other[:cut], other[cut:])
    assert (one.rows, str(one)) == (two.rows, str(two)) == (len(table), str(two))
    assert one.found.is_same(two.found)


@given(st.lists(rows, max_size=5), st.lists(rows, max_size=5))
def test_other_rows_have_another_digest(one: list[Row], two: list[Row]) -> None:
    same = sorted(map(canonical, one)) == sorted(map(canonical, two))
    assert (str(digest(one)) == str(digest(two))) == same


@given(st.lists(rows, min_size=1), st.data())
def test_slices_count_as_they_are(table: list[Row], data: Any) -> None:
    batch = pa.RecordBatch.from_pylist(table, schema=SCHEMA)
    start = data.draw(st.integers(0, len(table) - 1))
    found = RowDigest()
    found.add(batch.slice(start))
    assert str(found) == str(digest(table[start:]))


def test_rows_that_exchange_values_are_seen() -> None:
    one = pa.record_batch({"key": [b"a", b"b"], "value": [b"1", b"2"]})
    two = pa.record_batch({"key": [b"a", b"b"], "value": [b"2", b"1"]})
    first, second = RowDigest(), RowDigest()
    first.add(one)
    second.add(two)
    assert str(first) != str(second)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", None], pa.large_binary()),
        pa.array(["a", None], pa.string()),
        pa.array(["a", None], pa.large_string()),
        pa.array(["a", None]).dictionary_encode(),
    ],
)
def test_text_and_bytes_in_any_layout_are_the_same(column: pa.Array) -> None:
    one, two = RowDigest(), RowDigest()
    one.add(pa.record_batch({"value": column}))
    two.add(pa.record_batch({"value": pa.array([b"a", None], pa.binary())}))
    assert str(one) == str(two)


def test_a_null_is_no_empty_value() -> None:
    found = set()
    for value in (None, b"", b"\0"):
        one = RowDigest()
        one.add(pa.record_batch({"value": pa.array([value], pa.binary())}))
        found.add(str(one))
    one = RowDigest()
    one.add(pa.record_batch({"value": pa.nulls(1)}))
    assert len(found | {str(one)}) == 4


def test_columns_that_are_not_written_do_not_count() -> None:
    one, two = RowDigest(), RowDigest()
    one.add(pa.record_batch({"value": [b"a"], "offset": [1]}))
    two.add(pa.record_batch({"value": [b"a"], "offset": [2]}))
    assert str(one) == str(two)


def test_of_another_way_of_computing_it_the_number_counts() -> None:
    one = RowDigest()
    one.add(pa.record_batch({"value": [b"a"]}))
    assert one.found.is_same(RowSum(1, 7, 2))
    assert not one.found.is_same(RowSum(2, 7, 2))
    assert not one.found.is_same(RowSum(1, 7, 1))


@given(st.lists(rows, max_size=6), st.integers(1, 4))
def test_the_total_does_not_depend_on_the_tasks(table: list[Row], tasks: int) -> None:
    parts = [digest(table[task::tasks]).found for task in range(tasks)]
    assert RowSum.total(parts) == digest(table).found
