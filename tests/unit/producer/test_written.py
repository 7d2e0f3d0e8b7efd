"""The answer of ``send_many``: a sequence that makes its items when they are taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafkaio._producer.bulk import Written
from kafkaio.types import RecordMetadata

runs = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.integers(-1, 100),
        st.integers(1, 5),
        st.integers(0, 9),
    ),
    max_size=5,
)


def spelled_out(runs: list[tuple[str, int, int, int, int]]) -> list[RecordMetadata]:
    return [
        RecordMetadata(topic, partition, offset + at if offset >= 0 else -1, timestamp)
        for topic, partition, offset, count, timestamp in runs
        for at in range(count)
    ]


@given(runs=runs, at=st.slices(12), place=st.integers(-30, 30))
def test_is_like_the_list_of_its_items(runs: list[Any], at: slice, place: int) -> None:
    written, listed = Written(runs), spelled_out(runs)
    assert len(written) == len(listed)
    assert list(written) == listed
    assert written[at] == listed[at]
    assert written == listed
    assert listed == written
    assert written == Written(runs)
    assert written != [*listed, RecordMetadata("c", 0, 0, 0)]
    if -len(listed) <= place < len(listed):
        assert written[place] == listed[place]
    else:
        with pytest.raises(IndexError):
            written[place]


def test_differs_from_what_is_no_sequence_of_the_kind() -> None:
    written = Written([("t", 0, 5, 2, 9)])
    assert written != [RecordMetadata("t", 0, 5, 9), RecordMetadata("t", 0, 7, 9)]
    assert written != "ab"
    assert written != 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(written)


def test_repr_is_short() -> None:
    assert repr(Written([("t", 0, 5, 1, 9)])) == repr([RecordMetadata("t", 0, 5, 9)])
    assert repr(Written([])) == "[]"
    assert repr(Written([("t", 0, 5, 1_000, 9)])).startswith("<1000 RecordMetadata, ")
