"""Which ranges are asked for together, whose turn it is, and what is taken back."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.ranges import FetchedAnswer, RangeSchedule, RangeState
from kafkaio.errors import KafkaError, NetworkError
from kafkaio.types import OffsetRange, TopicPartition

FETCH_BYTES = 100_000


@dataclass
class Records:
    """What an answer has of a range."""

    start: int
    end: int

    def __post_init__(self) -> None:
        self.position = self.start

    @property
    def is_read(self) -> bool:
        return self.position >= self.end


def ranges_of(sizes: Iterable[int], topic: str = "t") -> RangeSchedule:
    """One range for each size, of partitions 0, 1, ..."""
    ranges = [
        OffsetRange(TopicPartition(topic, n), 10, 10 + size)
        for n, size in enumerate(sizes)
    ]
    return RangeSchedule(ranges, fetch_bytes=FETCH_BYTES, backoff=Backoff(100, 1_000))


def one_node(_: TopicPartition) -> int:
    return 1


def groups(
    ranges: RangeSchedule, now: float = 0.0, nodes: int = 1
) -> dict[int, list[int]]:
    """The numbers of the ranges that are asked for; range n is at node n % nodes."""
    choice = ranges.choose(lambda tp: tp.partition % nodes, nodes, now)
    return {node: [e.index for e in found] for node, found in choice.groups.items()}


def ask(ranges: RangeSchedule, node: int, states: Iterable[RangeState]) -> None:
    found = list(states)
    for each in found:
        each.request = ranges
    ranges.asking(node, ranges.total_bytes(found))


def land(
    ranges: RangeSchedule,
    node: int,
    asked: Mapping[RangeState, int],
    each_bytes: int = 100,
) -> None:
    """Answer what was asked for: so many records of each range."""
    ranges.answered(node, ranges.total_bytes(asked))
    answer = FetchedAnswer(node, 0)
    for each, count in asked.items():
        each.request = None
        if count:
            start = each.next_offset
            part = Records(start, start + count)
            ranges.received(each, part, answer, part.end, count * each_bytes)


def read(ranges: RangeSchedule) -> int | None:
    """Read a whole part; returns the number of its range."""
    each = ranges.turn()
    if each is None or not each.parts:
        return None
    part = each.parts[0][0]
    assert isinstance(part, Records)
    part.position = part.end
    ranges.accept(each)
    return each.index


def test_one_request_asks_for_as_many_ranges_as_it_may_bring() -> None:
    ranges = ranges_of([5] * 40)
    # 5 records of 1,024 bytes each, of which 100,000 bytes have 20 times.
    assert groups(ranges) == {0: [*range(20)]}
    [found] = ranges.choose(one_node, 1, 0.0).groups.values()
    assert ranges.total_bytes(found) == FETCH_BYTES
    assert ranges.total_bytes(found[:1]) == 5 * 1_024 + 65_536


def test_what_has_come_says_how_many_fit() -> None:
    ranges = ranges_of([5] * 40)
    [first] = ranges.choose(one_node, 1, 0.0).groups.values()
    ask(ranges, 1, first)
    assert ranges.choose(one_node, 1, 0.0).groups == {}
    land(ranges, 1, dict.fromkeys(first, 5))
    [second] = ranges.choose(one_node, 1, 0.0).groups.values()
    assert [each.index for each in second] == [*range(20, 40)]


def test_each_leader_is_asked_at_the_same_time() -> None:
    ranges = ranges_of([5] * 9)
    assert groups(ranges, nodes=3) == {0: [0, 3, 6], 1: [1, 4, 7], 2: [2, 5, 8]}


def test_a_large_range_is_asked_for_alone() -> None:
    ranges = ranges_of([1_000_000, 5, 5])
    assert groups(ranges) == {0: [0]}


def test_a_partition_is_in_a_request_once() -> None:
    tp = TopicPartition("t", 0)
    places = [OffsetRange(tp, 0, 5), OffsetRange(tp, 9, 12)]
    ranges = RangeSchedule(places, fetch_bytes=FETCH_BYTES, backoff=Backoff(1, 1))
    assert groups(ranges) == {0: [0]}


def test_a_leader_is_asked_again_while_its_answer_is_read() -> None:
    ranges = ranges_of([1_000_000])
    [[first]] = ranges.choose(one_node, 1, 0.0).groups.values()
    for _ in range(2):
        assert groups(ranges) == {0: [0]}
        ask(ranges, 0, [first])
        land(ranges, 0, {first: 100})
    # Two answers wait to be read.
    assert groups(ranges) == {}
    assert read(ranges) == 0
    assert groups(ranges) == {0: [0]}


def test_other_leaders_have_one_answer_that_waits() -> None:
    ranges = ranges_of([5, 1_000_000])
    [_, [second]] = ranges.choose(lambda tp: tp.partition, 2, 0.0).groups.values()
    ask(ranges, 1, [second])
    land(ranges, 1, {second: 100})
    assert groups(ranges, nodes=2) == {0: [0]}


def test_many_leaders_together_have_a_limit() -> None:
    ranges = ranges_of([1_000_000] * 50)
    choice = ranges.choose(lambda tp: tp.partition, 50, 0.0)
    for node, found in choice.groups.items():
        again = ranges.choose(lambda tp: tp.partition, 50, 0.0)
        if node in again.groups:
            ask(ranges, node, found)
    asked = [each for each in ranges.unread() if each.request is not None]
    assert len(asked) == 8


def test_ranges_have_their_turn_in_the_order_given() -> None:
    ranges = ranges_of([5, 5, 5])
    [found] = ranges.choose(one_node, 1, 0.0).groups.values()
    ask(ranges, 1, found)
    land(ranges, 1, {found[0]: 0, found[1]: 5, found[2]: 5})
    assert ranges.turn() is None
    ask(ranges, 1, found[:1])
    land(ranges, 1, {found[0]: 5})
    assert [read(ranges) for _ in range(3)] == [0, 1, 2]
    assert ranges.is_done()


def test_what_is_after_the_end_is_dropped() -> None:
    ranges = ranges_of([5, 5])
    [found] = ranges.choose(one_node, 1, 0.0).groups.values()
    ask(ranges, 1, found)
    land(ranges, 1, {found[0]: 8})
    part = found[0].parts[0][0]
    assert isinstance(part, Records)
    part.position = 15
    ranges.accept(found[0])
    assert not part.is_read
    assert not ranges.has_parts()
    assert ranges.unread() == [found[1]]


def test_late_ranges_are_passed_over_until_they_come() -> None:
    ranges = ranges_of([5, 5, 5, 5], "late")
    found = ranges.unread()
    ranges.choose(lambda tp: tp.partition % 2, 2, 0.0)
    ask(ranges, 0, [found[0], found[2]])
    ask(ranges, 1, [found[1], found[3]])
    assert not ranges.has_parts()
    land(ranges, 1, {found[1]: 5, found[3]: 2})
    assert ranges.has_parts()
    assert ranges.turn() is None
    ranges.pass_over()
    assert read(ranges) == 1
    land(ranges, 0, {found[0]: 5, found[2]: 5})
    # The late ones have their turn as soon as something of them is here.
    assert [read(ranges) for _ in range(3)] == [0, 2, 3]
    assert not ranges.is_done()
    assert [each.accepted for each in ranges.unread()] == [12]


def test_a_range_that_is_refused_is_told_in_its_turn() -> None:
    ranges = ranges_of([5, 5])
    first, second = ranges.unread()
    error = KafkaError("no")
    ranges.refuse(second, error)
    assert ranges.turn() is None
    ranges.choose(one_node, 1, 0.0)
    ask(ranges, 1, [first])
    land(ranges, 1, {first: 5})
    assert read(ranges) == 0
    turn = ranges.turn()
    assert turn is second
    assert turn.final is error
    assert groups(ranges) == {}
    second.final = None
    assert groups(ranges) == {0: [1]}


def test_failures_are_waited_for() -> None:
    ranges = ranges_of([5, 5])
    first, second = ranges.unread()
    ranges.choose(one_node, 1, 0.0)
    assert ranges.failed(first, NetworkError("x"), 10.0, 0.5) == (1, 0.1)
    assert ranges.failed(first, NetworkError("x"), 10.0, 0.5) == (2, 0.2)
    assert groups(ranges, now=10.1) == {0: [1]}
    assert ranges.next_due(10.1) == 10.2
    assert groups(ranges, now=10.2) == {0: [0, 1]}
    ranges.choose(one_node, 1, 10.2)
    assert ranges.node_failed(1, 11.0, 0.5) == (1, 0.1)
    assert ranges.choose(one_node, 1, 11.05).groups == {}
    assert ranges.next_due(11.05) == 11.1
    # Another broker may have become the leader.
    assert ranges.choose(lambda _: 2, 2, 11.05).groups == {2: [first, second]}
    ranges.node_answered(1)
    assert ranges.choose(one_node, 1, 11.05).groups == {1: [first, second]}


def test_what_did_not_fit_gets_more_room() -> None:
    ranges = ranges_of([5])
    [only] = ranges.unread()
    only.is_tight = True
    assert ranges.max_bytes(only) == FETCH_BYTES
    only.needed = 300_000
    assert ranges.total_bytes([only]) == 300_000


def test_partitions_without_a_leader() -> None:
    ranges = ranges_of([5, 5])
    choice = ranges.choose(lambda tp: tp.partition or None, 1, 0.0)
    assert [each.index for each in choice.leaderless] == [0]
    assert [*choice.groups] == [1]


@pytest.mark.parametrize("is_read", [False, True])
def test_what_is_taken_back_is_fetched_again(*, is_read: bool) -> None:
    ranges = ranges_of([5, 5])
    first, second = ranges.unread()
    ranges.choose(one_node, 1, 0.0)
    ask(ranges, 1, [first, second])
    land(ranges, 1, {first: 5, second: 5})
    if is_read:
        assert read(ranges) == 0
        assert ranges.unread() == [second]
    ranges.take_back(first, 10)
    assert ranges.unread() == [first, second]
    assert groups(ranges) == {0: [0]}
    assert ranges.turn() is None
    ask(ranges, 1, [first])
    land(ranges, 1, {first: 5})
    assert [read(ranges), read(ranges)] == [0, 1]


@given(
    sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=30),
    nodes=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_every_range_is_read_once_and_in_order(
    sizes: list[int], nodes: int, seed: int
) -> None:
    """Whatever brokers answer, fail to answer, and callers take back."""
    dice = random.Random(seed)
    ranges = ranges_of(sizes)
    seen: dict[int, list[int]] = {n: [] for n in range(len(sizes))}
    flights: deque[tuple[int, list[RangeState], int]] = deque()
    now = 0.0
    for _ in range(100_000):
        now += 0.05
        choice = ranges.choose(lambda tp: tp.partition % nodes, nodes, now)
        for node, found in choice.groups.items():
            assert all(each.request is None for each in found)
            assert all(known != node for known, _, _ in flights)
            ask(ranges, node, found)
            flights.append((node, found, ranges.total_bytes(found)))
        if flights and dice.random() < 0.7:
            flights.rotate(dice.randrange(len(flights)))
            _answer(ranges, flights.popleft(), dice, now)
        if dice.random() < 0.1:
            ranges.pass_over()
        _read_some(ranges, seen, dice)
        if ranges.is_done():
            break
    assert ranges.is_done()
    for index, size in enumerate(sizes):
        assert seen[index] == [*range(10, 10 + size)]
    for node, _, size in flights:
        ranges.answered(node, size)
    assert repr(ranges).endswith("| 0 bytes>")


@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=40),
    nodes=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_the_order_holds_while_all_leaders_answer(
    sizes: list[int], nodes: int, seed: int
) -> None:
    """Nobody has to be passed over, and memory has a limit."""
    dice = random.Random(seed)
    eager, misfits = dice.choice([0.1, 0.8]), dice.choice([0.1, 0.6])
    ranges = ranges_of(sizes)
    found: list[int] = []
    flights: deque[tuple[int, list[RangeState], int]] = deque()
    while not ranges.is_done():
        choice = ranges.choose(lambda tp: tp.partition % nodes, nodes, 0.0)
        for node, asked in choice.groups.items():
            ask(ranges, node, asked)
            flights.append((node, asked, ranges.total_bytes(asked)))
        assert flights or ranges.turn()
        if flights:
            flights.rotate(dice.randrange(len(flights)))
            node, asked, size = flights.popleft()
            ranges.answered(node, size)
            _fill(
                ranges,
                FetchedAnswer(node, 0),
                asked,
                size,
                [dice.random() < misfits for _ in asked],
            )
        while dice.random() < eager and (index := read(ranges)) is not None:
            found.append(index)
    assert found == sorted(found)


def _fill(
    ranges: RangeSchedule,
    answer: FetchedAnswer,
    asked: list[RangeState],
    size: int,
    misfits: list[bool],
) -> None:
    """Answer as a broker does: until the bytes are used up, one batch at least."""
    for each, is_misfit in zip(asked, misfits, strict=True):
        each.request = None
        count = min(each.within.end - each.next_offset, size // 100)
        if answer.left and is_misfit:
            count = 0  # its first batch does not fit
        if not answer.left:
            count = max(count, 1)
        if count:
            part = Records(each.next_offset, each.next_offset + count)
            ranges.received(each, part, answer, part.end, 100 * count)
            size -= 100 * count
        else:
            each.is_tight = True


def _answer(
    ranges: RangeSchedule,
    flight: tuple[int, list[RangeState], int],
    dice: random.Random,
    now: float,
) -> None:
    node, found, size = flight
    ranges.answered(node, size)
    asked = [each for each in found if each.request is not None]
    for each in asked:
        each.request = None
    if dice.random() < 0.2:
        ranges.node_failed(node, now, dice.random())
        return
    ranges.node_answered(node)
    answer = FetchedAnswer(node, 0)
    for each in asked:
        if dice.random() < 0.2:
            ranges.failed(each, NetworkError("x"), now, dice.random())
            continue
        # The last batch may go on after the end.
        end = each.next_offset + dice.randrange(1, 1_500)
        part = Records(each.next_offset, min(end, each.within.end))
        ranges.received(each, part, answer, end, 100 * (end - each.next_offset))


def _read_some(
    ranges: RangeSchedule, seen: dict[int, list[int]], dice: random.Random
) -> None:
    while (each := ranges.turn()) is not None and dice.random() < 0.8:
        part = each.parts[0][0]
        assert isinstance(part, Records)
        before = part.position
        assert before == each.accepted
        part.position = dice.randrange(before, part.end) + 1
        ranges.accept(each)
        if dice.random() < 0.1:
            ranges.take_back(each, before)
            continue
        seen[each.index] += range(before, part.position)
