"""The room for locked records, divided among leaders."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.share.room import Grant, ShareRoom

MIB = 1_048_576


def room(
    records: int = 500, *, size: int = 50 * MIB, is_exact: bool = True
) -> ShareRoom:
    return ShareRoom(records, size, 50 * MIB, is_exact=is_exact)


def ask(it: ShareRoom, node: int, **given: int) -> Grant | None:
    facts = {"locked": 0, "freed": 0, "buffered": 0, "leaders": 1, **given}
    return it.ask(node, **facts)


def test_a_single_leader_gets_all() -> None:
    assert ask(room(), 1, locked=100) == Grant(400, 50 * MIB, is_scarce=False)


def test_what_a_request_acknowledges_makes_room_for_what_it_brings() -> None:
    it = room()
    assert ask(it, 1, locked=500) is None
    assert ask(it, 1, locked=500, freed=30) == Grant(30, 50 * MIB, is_scarce=False)


def test_leaders_get_equal_parts() -> None:
    it = room(600)
    parts = [ask(it, node, leaders=3) for node in (1, 2, 3)]
    assert [part and part.records for part in parts] == [200, 200, 200]
    assert it.in_flight == 3
    assert ask(it, 4, leaders=4) is None


def test_the_bytes_are_divided_too() -> None:
    it = room(size=30 * MIB)
    first = ask(it, 1, leaders=2, buffered=10 * MIB)
    assert first is not None
    assert first.size == 10 * MIB
    second = ask(it, 2, leaders=2, buffered=10 * MIB)
    assert second is not None
    assert second.size == 10 * MIB
    assert ask(it, 3, leaders=3, buffered=10 * MIB) is None


def test_a_leader_that_had_nothing_gets_little_until_it_has_something() -> None:
    it = room(300)
    for node in (1, 2, 3):
        ask(it, node, leaders=3)
    it.answered(1, 0)
    little = ask(it, 1, leaders=3)
    assert little is not None
    assert little.records == 100  # it is the only one left
    it.answered(2, 100)
    it.answered(3, 100)
    it.answered(1, 0)
    little = ask(it, 1, locked=200, leaders=3)
    assert little is not None
    assert little.records == 33 // 8
    it.answered(1, 4)
    again = ask(it, 1, locked=200, leaders=3)
    assert again is not None
    assert again.records == 33


def test_leaders_take_turns_where_there_is_room_for_one() -> None:
    it, order = room(1), []
    for _ in range(6):
        for node in (1, 2, 3):
            grant = ask(it, node, leaders=3)
            if grant is not None:
                assert grant.records == 1
                assert grant.is_scarce
                order.append(node)
        it.answered(order[-1], 0)
    assert order == [1, 2, 3, 1, 2, 3]


def test_one_that_leaves_loses_its_turn() -> None:
    it = room(1)
    assert ask(it, 1, leaders=3) is not None
    assert ask(it, 2, leaders=3) is None
    assert ask(it, 3, leaders=3) is None
    it.unanswered(1)
    it.leave(2)
    assert ask(it, 3, leaders=3) is not None


def test_batches_that_exceed_their_part_are_fetched_one_after_another() -> None:
    it = room(100, is_exact=False)
    assert ask(it, 1, leaders=2) is not None
    it.answered(1, 149)  # 99 beyond its part of 50
    assert ask(it, 1, locked=149, leaders=2) is None
    assert ask(it, 2, locked=0, leaders=2) is None  # the other one waits for longer
    assert ask(it, 1, locked=0, leaders=2) is not None
    assert ask(it, 2, locked=0, leaders=2) is None
    it.answered(1, 0)
    # Now that nothing is in flight, one more may exceed it.
    assert ask(it, 2, locked=0, leaders=2) is not None


def test_one_that_was_answered_lets_those_that_wait_go_first() -> None:
    it = room(100, is_exact=False)
    assert ask(it, 1, leaders=2) is not None
    it.answered(1, 149)
    order: list[int] = []
    assert ask(it, 1, leaders=2) is not None
    for _ in range(6):
        # The one in flight is answered, and asks again before the other does.
        busy = 1 if order[-1:] != [1] else 2
        assert ask(it, 3 - busy, leaders=2) is None
        it.answered(busy, 0)
        assert ask(it, busy, leaders=2) is None
        assert ask(it, 3 - busy, leaders=2) is not None
        order.append(busy)
    assert order == [1, 2, 1, 2, 1, 2]


def test_quiet_counts_what_brought_nothing_anywhere() -> None:
    it = room(1)
    for node, acquired, quiet in [(1, 0, 1), (2, 0, 2), (1, 3, 0), (2, 0, 1)]:
        ask(it, node, leaders=2)
        it.answered(node, acquired)
        assert it.quiet == quiet


def test_small_excess_leaves_room_for_others() -> None:
    it = room(100, is_exact=False)
    ask(it, 1, leaders=2)
    it.answered(1, 54)
    first = ask(it, 1, locked=0, leaders=2)
    second = ask(it, 2, locked=0, leaders=2)
    assert first is not None
    assert second is not None
    assert first.records + second.records + 2 * 4 <= 100


class Rooms(RuleBasedStateMachine):
    """Leaders that lock what they are asked for, and a program that acknowledges."""

    def __init__(self) -> None:
        super().__init__()
        self.locked: dict[int, int] = {}
        self.granted: dict[int, int] = {}
        self.queue: list[int] = []

    @initialize(limit=st.integers(1, 40), leaders=st.integers(1, 5))
    def begin(self, limit: int, leaders: int) -> None:
        self.limit = limit
        self.nodes = range(leaders)
        self.room = room(limit)

    @property
    def total(self) -> int:
        return sum(self.locked.values())

    @rule(number=st.integers(0, 4))
    def asks(self, number: int) -> None:
        node = self.nodes[number % len(self.nodes)]
        if node in self.granted:
            return
        if node not in self.queue:
            self.queue.append(node)
        before = self.queue.index(node)
        free = self.limit - self.total - sum(self.granted.values())
        grant = ask(self.room, node, locked=self.total, leaders=len(self.nodes))
        # Whoever asked before keeps a place; nothing else refuses.
        assert (grant is None) == (free <= before)
        if grant is not None:
            assert 1 <= grant.records <= free
            self.queue.remove(node)
            self.granted[node] = grant.records

    @precondition(lambda self: self.granted)
    @rule(data=st.data())
    def is_answered(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(sorted(self.granted)))
        granted = self.granted.pop(node)
        count = data.draw(st.integers(0, granted))
        self.room.answered(node, count)
        self.locked[node] = self.locked.get(node, 0) + count

    @rule(data=st.data())
    def acknowledges(self, data: st.DataObject) -> None:
        for node, count in self.locked.items():
            self.locked[node] = data.draw(st.integers(0, count))

    @invariant()
    def keeps_the_bound(self) -> None:
        if hasattr(self, "limit"):
            assert self.total + sum(self.granted.values()) <= self.limit


TestRooms = Rooms.TestCase


@pytest.mark.parametrize("is_exact", [True, False])
def test_its_text_says_how_it_stands(is_exact: bool) -> None:
    it = room(is_exact=is_exact)
    ask(it, 1)
    assert repr(it) == "<ShareRoom 500 | 1 in flight, 0 wait>"
