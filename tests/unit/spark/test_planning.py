"""The plan of a read covers every range once and depends on nothing else."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from kafkaio.spark._planning import plan
from kafkaio.types import OffsetRange, TopicPartition


def ranges_of(*sizes: int, start: int = 0) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, size in enumerate(sizes)
    ]


def sizes_of(tasks: list[tuple[OffsetRange, ...]]) -> list[list[int]]:
    return [[r.end - r.start for r in task] for task in tasks]


def test_one_task_for_each_partition() -> None:
    tasks = plan(reversed(ranges_of(5, 0, 7, 3)))
    assert [task[0].partition.partition for task in tasks] == [0, 2, 3]
    assert sizes_of(tasks) == [[5], [7], [3]]


def test_a_range_that_went_back_is_left_out() -> None:
    assert plan([OffsetRange(TopicPartition("t", 0), 5, 3)]) == []


def test_large_ranges_are_split() -> None:
    tasks = plan(ranges_of(10), max_records_per_partition=4)
    assert sizes_of(tasks) == [[3], [3], [4]]
    assert [task[0].start for task in tasks] == [0, 3, 6]


def test_a_number_of_partitions() -> None:
    assert sizes_of(plan(ranges_of(10), min_partitions=3)) == [[3], [3], [4]]
    assert sizes_of(plan(ranges_of(10, 10), min_partitions=2)) == [[10], [10]]
    # The small ones have one task each, the rest is divided among what is left.
    tasks = plan(ranges_of(800, 5, 5), min_partitions=8)
    assert sizes_of(tasks) == [[133], [133], [133], [133], [134], [134], [5], [5]]


def test_more_partitions_than_offsets() -> None:
    assert sizes_of(plan(ranges_of(2), min_partitions=5)) == [[1], [1]]


def test_a_small_part_keeps_its_partition_whole() -> None:
    # As in the connector: 1,000 is divided into two, then counted as small.
    tasks = plan(ranges_of(1000, 3000), max_records_per_partition=500, min_partitions=9)
    assert len(tasks) == 8


def test_small_ranges_are_bundled() -> None:
    tasks = plan(ranges_of(10, 10, 10, 50, 10, 10), min_records_per_task=30)
    assert sizes_of(tasks) == [[10, 10, 10], [50], [10, 10]]
    assert sizes_of(plan(ranges_of(10, 50, 10), min_records_per_task=30)) == [
        [10, 10],
        [50],
    ]
    assert sizes_of(plan(ranges_of(29, 29, 1), min_records_per_task=30)) == [
        [29, 29],
        [1],
    ]


def test_bundles_leave_as_many_tasks_as_were_asked_for() -> None:
    tasks = plan(ranges_of(9, 9, 9, 9), min_partitions=3, min_records_per_task=100)
    assert sizes_of(tasks) == [[9, 9], [9], [9]]
    tasks = plan(ranges_of(9), min_partitions=3, min_records_per_task=100)
    assert sizes_of(tasks) == [[3], [3], [3]]


OFFSETS = st.integers(0, 2**62)
RANGES = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 30),
        st.integers(0, 2**50),
        st.one_of(st.integers(-3, 100), st.integers(0, 10**12)),
    ),
    max_size=12,
    unique_by=lambda each: each[:2],
).map(
    lambda found: [
        OffsetRange(TopicPartition(topic, number), start, start + size)
        for topic, number, start, size in found
    ]
)


@given(
    ranges=RANGES,
    min_partitions=st.none() | st.integers(1, 40),
    parts=st.none() | st.integers(1, 40),
    min_records_per_task=st.integers(0, 10**6),
    seed=st.integers(),
)
def test_a_plan_covers_what_is_read_and_nothing_else(
    ranges: list[OffsetRange],
    min_partitions: int | None,
    parts: int | None,
    min_records_per_task: int,
    seed: int,
) -> None:
    largest = max((r.end - r.start for r in ranges), default=1)
    most = None if parts is None else max(1, largest // parts)
    tasks = plan(
        ranges,
        min_partitions=min_partitions,
        max_records_per_partition=most,
        min_records_per_task=min_records_per_task,
    )
    # It is the same for the same ranges, in whatever order they come.
    shuffled = ranges[:]
    random.Random(seed).shuffle(shuffled)
    assert tasks == plan(
        shuffled,
        min_partitions=min_partitions,
        max_records_per_partition=most,
        min_records_per_task=min_records_per_task,
    )
    read = sorted(r for task in tasks for r in task)
    assert all(task for task in tasks)
    assert all(r.start < r.end for r in read)
    joined: list[OffsetRange] = []
    for r in read:
        last = joined[-1] if joined else None
        if last and last.partition == r.partition and last.end == r.start:
            joined[-1] = OffsetRange(r.partition, last.start, r.end)
        else:
            joined.append(r)
    assert joined == sorted(r for r in ranges if r.start < r.end)
    if most is not None:
        assert all(r.end - r.start <= most for r in read)
    if min_partitions is not None and len(read) >= min_partitions:
        assert len(tasks) >= min_partitions
    for task in tasks:
        # A task is full before its last range at the latest.
        assert len(task) == 1 or all(
            sum(r.end - r.start for r in task[:n]) < min_records_per_task
            for n in range(1, len(task))
        )
