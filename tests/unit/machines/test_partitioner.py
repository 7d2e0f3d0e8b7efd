from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import example, given, strategies as st

from kafkaio._machines.partitioner import (
    PartitionTurns,
    StickyPartition,
    draw,
    key_partition,
    murmur2,
    runs_of,
)

# From Kafka's own tests (UtilsTest.testMurmur2).
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", JAVA)
def test_murmur2_is_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key]


def spelled_out(data: bytes) -> int:
    """Murmur2 byte by byte, as the algorithm is written down."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    at = 0
    while len(data) - at >= 4:
        k = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        k = k * m & mask
        k ^= k >> 24
        k = k * m & mask
        h = h * m & mask ^ k
        at += 4
    rest = len(data) - at
    if rest == 3:
        h ^= data[at + 2] << 16
    if rest >= 2:
        h ^= data[at + 1] << 8
    if rest >= 1:
        h = (h ^ data[at]) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - 2**32 if h >= 2**31 else h


@given(st.binary(max_size=40))
def test_murmur2_is_as_written_down(data: bytes) -> None:
    assert murmur2(data) == spelled_out(data)


@given(st.binary(max_size=100), st.integers(1, 1_000))
@example(b"long" * 20, 7)
def test_a_key_has_one_partition_of_the_topic(key: bytes, count: int) -> None:
    partition = key_partition(key, count)
    assert 0 <= partition < count
    assert partition == (spelled_out(key) & 0x7FFFFFFF) % count


@given(
    st.lists(st.integers(0, 50), min_size=1, unique=True).map(sorted),
    st.dictionaries(st.integers(0, 50), st.integers(0, 9)),
    st.floats(0, 1, exclude_max=True),
)
def test_a_draw_is_that_of_the_table_of_all_weights(
    partitions: list[int], loads: dict[int, int], roll: float
) -> None:
    there = [loads.get(number, 0) for number in partitions]
    table = list(accumulate(max(there) + 1 - load for load in there))
    expected = partitions[bisect_right(table, int(roll * table[-1]))]
    assert draw(partitions, loads, roll) == expected


def test_weights_are_the_longest_queue_plus_one_minus_the_own() -> None:
    rolls = [i / 60 for i in range(60)]
    counts = Counter(draw([3, 5, 7], {5: 2, 7: 1}, roll) for roll in rolls)
    assert counts == {3: 30, 5: 10, 7: 20}  # 3 : 1 : 2
    counts = Counter(draw([3, 5, 7], {}, roll) for roll in rolls)
    assert counts == {3: 20, 5: 20, 7: 20}


def test_sticky_switches_for_a_new_batch_when_its_share_is_taken() -> None:
    sticky = StickyPartition(100)
    assert sticky.is_due(1, 0.0)  # there is none yet
    sticky.switch(4, 0.0)
    assert (sticky.partition, sticky.left) == (4, 200)
    assert not sticky.is_due(99, 0.0)
    sticky.left -= 80
    assert not sticky.is_due(19, 0.0)
    assert sticky.is_due(20, 0.0)
    sticky.left -= 120
    assert sticky.is_due(1, 0.0)
    sticky.switch(5, 0.0)
    assert not sticky.is_due(1, 0.0)


def test_while_records_are_many_a_partition_takes_up_to_a_batch_at_a_time() -> None:
    sticky = StickyPartition(100, most=900)
    now, taken = 10.0, []
    for number in range(6):
        sticky.switch(number, now)
        taken.append(sticky.left)
        now += 0.001
    assert taken == [200, 400, 800, 900, 900, 900]
    assert not sticky.is_due(449, now)
    assert sticky.is_due(450, now)
    now += 0.01  # neither quick nor slow
    sticky.switch(1, now)
    assert sticky.left == 900
    now += 0.03
    sticky.switch(2, now)
    assert sticky.left == 200


def test_records_that_become_few_leave_a_partition_after_the_share() -> None:
    sticky = StickyPartition(100, most=1_000)
    now = 10.0
    for number in range(6):
        sticky.switch(number, now)
    assert sticky.left == 1_000
    sticky.left -= 90
    assert not sticky.is_due(10, now + 0.019)
    assert not sticky.is_due(9, now + 0.021)
    assert sticky.is_due(10, now + 0.021)
    # That batch is full, and nothing else came: a few records go on from the start.
    sticky.switch(3, now + 60.0)
    assert sticky.left == 200


# ---- tables --------------------------------------------------------------------------


@given(st.integers(0, 2**40), st.integers(1, 5_000), st.integers(1, 200_000))
def test_a_table_has_the_same_number_of_runs_for_each_partition_or_few(
    size: int, partitions: int, longest: int
) -> None:
    runs = runs_of(size, partitions, longest)
    assert runs >= 1
    if runs >= partitions:
        assert runs % partitions == 0
        # No run is longer than it has to be, and there are no more than that needs.
        assert size <= runs * longest
        assert runs == partitions or size > (runs - partitions) * longest
    else:  # not shattered
        assert runs == 1 or size // runs >= 4_096
        assert runs <= 16 or size // runs >= 32_768


@pytest.mark.parametrize(
    ("size", "partitions", "runs"),
    [
        (70_000, 8, 8),  # five thousand rows of a few bytes
        (70_000, 200, 16),
        (3_000, 8, 1),
        (1_100_000, 8, 16),
        (1_100_000, 200, 33),
        (1_100_000, 1, 9),
    ],
)
def test_runs_of(size: int, partitions: int, runs: int) -> None:
    assert runs_of(size, partitions, 131_072) == runs


def test_partitions_take_turns_from_one_that_is_drawn() -> None:
    turns = PartitionTurns()
    assert list(turns.order((1, 4, 6), 0.5)) == [4, 6, 1]
    turns.begin(4)
    assert list(turns.order((1, 4, 6), 0.0)) == [6, 1, 4]
    assert list(turns.order((1, 6), 0.0)) == [6, 1]  # whose leader is gone
    turns.begin(6)
    assert list(turns.order(range(9), 0.0)) == [7, 8, *range(7)]
    turns.begin(8)
    assert next(turns.order(range(9), 0.0)) == 0


def test_small_tables_fill_a_batch_together() -> None:
    turns = PartitionTurns()
    assert turns.is_due(10, range(3))  # the first one
    turns.begin(2)
    turns.take(16_000)
    assert not turns.is_due(384, range(3))
    assert turns.is_due(385, range(3))
    assert turns.is_due(1, range(2))  # the partition is not usable
    assert turns.is_due(1, (1, 3))
    turns.begin(2)
    assert not turns.is_due(385, range(3))


def test_what_is_lent_is_taken_back() -> None:
    sticky = StickyPartition(100)
    sticky.take_back()  # nothing was lent
    sticky.switch(3, 0.0)
    sticky.left -= 50
    sticky.lend(7)
    sticky.lend(8)
    assert sticky.partition == 8
    assert not sticky.is_due(10_000_000, 0.0)
    sticky.left -= 1_000
    sticky.take_back()
    assert (sticky.partition, sticky.left) == (3, 150)
    sticky.take_back()
    assert (sticky.partition, sticky.left) == (3, 150)
