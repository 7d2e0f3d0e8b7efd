"""Offsets of many partitions: JSON, bounds, limits, losses."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ConfigurationError
from kafkaio.spark._bounds import AtOffsets, AtTime, AtTimes
from kafkaio.spark._offsets import (
    TriggerDelay,
    another_topic,
    from_json,
    inside,
    lag_of,
    limited,
    lookups,
    name_of,
    no_record,
    outside,
    ranges_between,
    remade,
    resolved,
    to_json,
    topic_ids_of,
    without,
)
from kafkaio.types import OffsetAndTimestamp, OffsetRange, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def at(offset: int) -> OffsetAndTimestamp:
    return OffsetAndTimestamp(offset, -1)


# ---- JSON ----------------------------------------------------------------------------

ID, OTHER = UUID(int=5), UUID("4e5f8a52-6a3c-4d8e-9f01-23456789abcd")


def test_offsets_are_in_the_order_of_topics_and_partitions() -> None:
    offsets = {TopicPartition("t", n): n * 10 for n in reversed(range(40))}
    found = to_json(offsets | {A0: 7})
    assert [*found] == ["a", "t"]
    assert [*found["t"]] == [str(n) for n in range(40)]


def test_ids_of_topics_stand_beside_offsets() -> None:
    found = to_json({A0: 3, A1: 4, B0: 5}, {"a": OTHER, "c": ID})
    assert found == {
        "a": {"0": 3, "1": 4},
        "b": {"0": 5},
        f"kafkaio.topic-id:a:{OTHER}": {},
    }
    assert from_json(found) == {A0: 3, A1: 4, B0: 5}
    assert topic_ids_of(found) == {"a": OTHER}
    assert topic_ids_of({"a": {"0": 3}, "kafkaio.topic-id:b:no-id": {}}) == {}


def test_topics_that_were_made_again() -> None:
    before = {"a": ID, "b": ID, "c": ID}
    now = {"a": OTHER, "b": ID, "d": OTHER}
    assert remade(before, now) == ["a"]
    assert remade({}, now) == remade(before, {}) == []
    assert without({A0: 1, B0: 2}, ["a"]) == {B0: 2}
    assert another_topic("a", before, now) == (
        f"topic 'a' was deleted and made again: its id is {OTHER} and was {ID}"
    )


OFFSETS = st.dictionaries(
    st.builds(TopicPartition, st.text("abcXYZ019._-", min_size=1), st.integers(0, 500)),
    st.integers(0, 2**63 - 1),
    max_size=20,
)


@given(OFFSETS)
def test_offsets_survive_json(offsets: dict[TopicPartition, int]) -> None:
    for ids in ({}, {tp.topic: OTHER for tp in offsets}):
        found = json.loads(json.dumps(to_json(offsets, ids)))
        assert from_json(found) == offsets
        assert topic_ids_of(found) == ids


@pytest.mark.parametrize(
    "value", [{"logOffset": 5}, {"t": {"x": 5}}, {"t": {"0": "5"}}, {"t": {"0": True}}]
)
def test_offsets_of_another_source(value: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="another kind of source"):
        from_json(value)  # type: ignore[arg-type]


# ---- bounds --------------------------------------------------------------------------


def test_what_is_looked_up() -> None:
    both = [A0, A1]
    assert lookups("earliest", both, "start") == {A0: "earliest", A1: "earliest"}
    assert lookups("latest", both, "start") == {A0: "latest", A1: "latest"}
    assert lookups(AtTime(5), both, "start") == {A0: 5, A1: 5}
    assert lookups(AtTimes({A0: 5, A1: 6}), both, "start") == {A0: 5, A1: 6}
    assert lookups(AtOffsets({A0: -2, A1: -1}), both, "end") == {
        A0: "earliest",
        A1: "latest",
    }
    assert lookups(AtOffsets({A0: 7, A1: 0}), both, "end") == {}


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (AtOffsets({A0: 5}), "startingOffsets must name every partition that is read"),
        (AtOffsets({A0: 5}), "a-1 is missing; use -2"),
        (AtOffsets({}), "a-0, a-1 are missing"),
        (AtOffsets({A0: 1, A1: 1, B0: 1}), "b-0 cannot be read here"),
        (AtTimes({A0: 1, B0: 1}), "startingOffsetsByTimestamp must name every"),
        (AtTimes({A0: 1, B0: 1}), "a-1 is missing and b-0 cannot be read here"),
    ],
)
def test_bounds_of_other_partitions(bound: AtOffsets | AtTimes, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lookups(bound, [A0, A1], "start")
    assert message in str(caught.value)


def test_bounds_are_resolved() -> None:
    assert resolved("earliest", {A0: at(3)}) == ({A0: 3}, [])
    mixed = AtOffsets({A0: 7, A1: -1})
    assert resolved(mixed, {A1: at(9)}) == ({A0: 7, A1: 9}, [])
    assert resolved(AtTime(5), {A1: None, A0: None}) == ({}, [A0, A1])


def test_no_record_at_a_time() -> None:
    one = no_record(AtTime(5), [A1, A0])
    assert "a-0 has no record at or after the timestamp 5 of startingTimestamp" in str(
        one
    )
    other = no_record(AtTimes({A1: 6}), [A1])
    assert "timestamp 6 of startingOffsetsByTimestamp;" in str(other)
    assert "a-0" in str(no_record("earliest", [A0]))


# ---- limits --------------------------------------------------------------------------


def test_shares_are_in_proportion() -> None:
    latest = {A0: 100, A1: 300, B0: 10}
    start = {A0: 0, A1: 0, B0: 10}
    assert limited(100, start, latest, {}) == {A0: 25, A1: 75, B0: 10}
    # 1.5 is rounded down to 1, and 0.001 up to 1.
    assert limited(2, {A0: 0, A1: 0}, {A0: 3, A1: 1}, {}) == {A0: 1, A1: 1}
    assert limited(5, {A0: 0, A1: 0}, {A0: 10**6, A1: 1}, {}) == {A0: 4, A1: 1}


def test_a_limit_above_what_there_is() -> None:
    assert limited(1000, {A0: 5}, {A0: 7}, {}) == {A0: 7}
    assert limited(1000, {A0: 5}, {A0: 5}, {}) == {A0: 5}
    assert limited(10, {}, {}, {}) == {}


def test_a_new_partition_has_a_share_from_its_earliest_offset() -> None:
    assert limited(10, {A0: 0}, {A0: 10, A1: 60}, {A1: 50}) == {A0: 5, A1: 55}
    # One that was deleted meanwhile has none.
    assert limited(10, {A0: 0}, {A0: 20, A1: 60}, {}) == {A0: 10, A1: 60}


def test_offsets_that_went_back_have_no_share() -> None:
    assert limited(10, {A0: 50, A1: 0}, {A0: 3, A1: 20}, {}) == {A0: 3, A1: 10}


@given(
    limit=st.integers(1, 10**9),
    sizes=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**50))),
)
def test_a_limited_end_is_between_start_and_latest(
    limit: int, sizes: list[tuple[int, int]]
) -> None:
    start = {TopicPartition("t", n): first for n, (first, _) in enumerate(sizes)}
    latest = {TopicPartition("t", n): sum(each) for n, each in enumerate(sizes)}
    end = limited(limit, start, latest, {})
    for tp in latest:
        assert start[tp] <= end[tp] <= latest[tp]
        # Nothing starves.
        assert end[tp] > start[tp] or latest[tp] == start[tp]
    moved = sum(end[tp] - start[tp] for tp in latest)
    assert moved <= limit + len(sizes)


def test_a_trigger_waits_for_offsets_or_time() -> None:
    delay = TriggerDelay(10, 60.0)
    assert not delay.waits(1000.0, {A0: 0}, {A0: 1})  # the first never waits
    assert delay.waits(1001.0, {A0: 0}, {A0: 9})
    assert not delay.waits(1002.0, {A0: 0}, {A0: 10})
    assert delay.waits(1061.0, {A0: 10}, {A0: 19})
    assert not delay.waits(1062.0, {A0: 10}, {A0: 19})
    assert delay.waits(1063.0, {A0: 19}, {A0: 20, A1: 8})
    assert not delay.waits(1063.0, {A0: 19}, {A0: 20, A1: 9})


# ---- ranges --------------------------------------------------------------------------


def test_ranges_of_a_micro_batch() -> None:
    found = ranges_between({A0: 1, A1: 5}, {A1: 7, A0: 1, B0: 4}, {B0: 0})
    assert found.losses == []
    assert found.ranges == [
        OffsetRange(A0, 1, 1),
        OffsetRange(A1, 5, 7),
        OffsetRange(B0, 0, 4),
    ]


def test_what_may_be_lost() -> None:
    gone = ranges_between({A0: 5}, {}, {})
    assert gone.ranges == []
    assert gone.losses == ["partition a-0 is gone, which was read up to offset 5"]
    late = ranges_between({}, {A0: 9}, {A0: 3})
    assert late.ranges == [OffsetRange(A0, 3, 9)]
    assert late.losses == ["new partition a-0 starts at 3 instead of 0"]
    deleted = ranges_between({}, {A0: 9}, {})
    assert deleted.ranges == []
    assert deleted.losses == ["new partition a-0 was deleted before it was read"]
    back = ranges_between({A0: 9}, {A0: 4}, {})
    assert back.ranges == [OffsetRange(A0, 9, 4)]
    assert back.losses[0].startswith("the end of a-0 went back from 9 to 4: its topic")


def test_what_the_logs_do_not_have() -> None:
    ranges = [OffsetRange(A0, 2, 9), OffsetRange(A1, 0, 5), OffsetRange(B0, 4, 4)]
    assert outside(ranges, {A0: 2, A1: 0, B0: 9}, {A0: 9, A1: 5, B0: 9}) == []
    assert outside(ranges, {A0: 3, A1: 0}, {A0: 9, A1: 4}) == [
        "a-0 is to be read from 2 to 9, but its log has 3 to 9",
        "a-1 is to be read from 0 to 5, but its log has 0 to 4",
    ]
    assert outside(ranges, {A0: 2}, {A0: 9}) == [
        "a-1 is to be read from 0 to 5, but the partition is gone"
    ]


def test_what_is_there_of_ranges() -> None:
    ranges = [OffsetRange(A1, 0, 5), OffsetRange(A0, 2, 9), OffsetRange(B0, 4, 8)]
    assert inside(ranges, {A0: 3, A1: 5, B0: 0}, {A0: 8, A1: 9, B0: 9}) == [
        OffsetRange(A0, 3, 8),
        OffsetRange(B0, 4, 8),
    ]
    assert inside(ranges, {A0: 0}, {A1: 9}) == []


def test_names_and_lag() -> None:
    assert name_of(A1) == "a-1"
    assert lag_of({A0: 5, A1: 9}, {A0: 7, A1: 8, B0: 3}) == {A0: 2, A1: 0, B0: 3}
