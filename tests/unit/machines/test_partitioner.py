from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkaio._machines.partitioner import (
    StickyPartition,
    draw,
    key_partition,
    murmur2,
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
    st.lists(st.integers(0, 50), min_size=1, unique=True),
    st.floats(0, 1, exclude_max=True),
    st.data(),
)
def test_a_draw_is_one_of_the_partitions(
    partitions: list[int], roll: float, data: st.DataObject
) -> None:
    loads = data.draw(
        st.none()
        | st.lists(
            st.integers(0, 9), min_size=len(partitions), max_size=len(partitions)
        )
    )
    assert draw(partitions, loads, roll) in partitions


def test_weights_are_the_longest_queue_plus_one_minus_the_own() -> None:
    rolls = [i / 60 for i in range(60)]
    counts = Counter(draw([3, 5, 7], [0, 2, 1], roll) for roll in rolls)
    assert counts == {3: 30, 5: 10, 7: 20}  # 3 : 1 : 2
    counts = Counter(draw([3, 5, 7], None, roll) for roll in rolls)
    assert counts == {3: 20, 5: 20, 7: 20}


def test_sticky_switches_for_a_new_batch_when_its_share_is_taken() -> None:
    sticky = StickyPartition(100)
    assert sticky.is_due(1)  # there is none yet
    sticky.switch(4)
    assert (sticky.partition, sticky.left) == (4, 200)
    assert not sticky.is_due(99)
    sticky.left -= 80
    assert not sticky.is_due(19)
    assert sticky.is_due(20)
    sticky.left -= 120
    assert sticky.is_due(1)
    sticky.switch(5)
    assert not sticky.is_due(1)
