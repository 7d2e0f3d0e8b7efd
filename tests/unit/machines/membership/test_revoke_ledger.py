"""Every assignment ends once: given back or lost."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._machines.membership.revoke_ledger import Claim, RevokeLedger, Stage
from kafkaio.types import TopicPartition

A, B, C = (TopicPartition("t", n) for n in range(3))
ALL = [A, B, C]


def test_the_way_out() -> None:
    ledger = RevokeLedger()
    assert ledger.assign([A, B]) == {A, B}
    assert ledger.request([A], 10.0) == {A}
    assert ledger.stage(A) is Stage.REQUESTED
    assert ledger.begin() == ((), float("inf"))
    ledger.step()
    assert ledger.stage(A) is Stage.READY
    claims, deadline = ledger.begin()
    assert [claim.partition for claim in claims] == [A]
    assert deadline == 10.0
    assert ledger.stage(A) is Stage.COMPLETING
    assert ledger.owned == {A, B}
    assert ledger.complete(claims) == {A}
    assert ledger.owned == {B}
    assert ledger.stage(A) is None
    assert ledger.complete(claims) == frozenset()


def test_an_old_claim_does_not_touch_a_new_assignment() -> None:
    ledger = RevokeLedger()
    ledger.assign([A])
    first = ledger.numbers[A]
    ledger.request([A], 5.0)
    ledger.step()
    claims, _ = ledger.begin()
    assert ledger.lose() == {A}
    ledger.assign([A])
    assert ledger.numbers[A] > first
    assert ledger.complete(claims) == frozenset()
    assert ledger.stage(A) is Stage.HELD


def test_a_deadline_only_comes_nearer() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    ledger.request([A, C], 10.0)
    assert ledger.request([A, B], 20.0) == {B}
    assert ledger.next_deadline() == 10.0
    assert ledger.expire(9.9) == frozenset()
    assert ledger.expire(10.0) == {A}
    assert ledger.request([B], 15.0) == frozenset()
    assert ledger.next_deadline() == 15.0
    assert ledger.lose([B, C]) == {B}
    assert ledger.next_deadline() is None


def test_only_what_was_requested_is_released() -> None:
    ledger = RevokeLedger()
    ledger.assign([A, B])
    ledger.request([A], 10.0)
    ledger.release([A, B, C])
    assert [claim.partition for claim in ledger.begin()[0]] == [A]
    assert ledger.stage(B) is Stage.HELD


class LedgerLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = RevokeLedger()
        self.now = 0.0
        self.open: dict[int, TopicPartition] = {}
        self.ended: set[int] = set()
        self.requested: set[int] = set()
        self.stepped: set[int] = set()
        self.claims: list[Claim] = []

    def end(self, partitions: frozenset[TopicPartition]) -> None:
        for tp in partitions:
            (number,) = (n for n, p in self.open.items() if p == tp)
            del self.open[number]
            assert number not in self.ended
            self.ended.add(number)

    @rule(partitions=st.sets(st.sampled_from(ALL)))
    def assign(self, partitions: set[TopicPartition]) -> None:
        before = set(self.open.values())
        assert self.ledger.assign(partitions) == partitions - before
        for tp in partitions - before:
            number = self.ledger.numbers[tp]
            assert number not in self.ended
            self.open[number] = tp

    @rule(partitions=st.sets(st.sampled_from(ALL)), wait=st.integers(1, 5))
    def request(self, partitions: set[TopicPartition], wait: int) -> None:
        self.ledger.request(partitions, self.now + wait)
        self.requested |= {n for n, tp in self.open.items() if tp in partitions}

    @rule()
    def step(self) -> None:
        self.ledger.step()
        self.stepped |= self.requested

    @rule()
    def begin(self) -> None:
        claims, _ = self.ledger.begin()
        # The user's step comes first.
        assert {claim.number for claim in claims} <= self.stepped
        self.claims += claims

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        if self.claims:
            claim = data.draw(st.sampled_from(self.claims))
            self.end(self.ledger.complete([claim]))

    @rule(wait=st.integers(1, 5))
    def pass_time(self, wait: int) -> None:
        self.now += wait
        lost = self.ledger.expire(self.now)
        assert {n for n, tp in self.open.items() if tp in lost} <= self.requested
        self.end(lost)
        deadline = self.ledger.next_deadline()
        assert deadline is None or deadline > self.now

    @rule(partitions=st.none() | st.sets(st.sampled_from(ALL)))
    def lose(self, partitions: set[TopicPartition] | None) -> None:
        self.end(self.ledger.lose(partitions))

    @invariant()
    def agrees(self) -> None:
        assert self.ledger.numbers == {tp: n for n, tp in self.open.items()}
        assert self.ledger.owned == set(self.open.values())
        assert self.ledger.pending == {
            tp for n, tp in self.open.items() if n in self.requested
        }


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
