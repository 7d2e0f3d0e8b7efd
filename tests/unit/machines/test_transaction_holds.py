"""Which partitions a transaction works on, and what it hears of them."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.transaction_holds import HoldChanges, TransactionHolds
from kafkaio.types import OffsetAndMetadata, TopicPartition

TPS = A, B, C = [TopicPartition("t", n) for n in range(3)]
NOTHING: frozenset[TopicPartition] = frozenset()


def holding(*tps: TopicPartition) -> TransactionHolds:
    holds = TransactionHolds()
    for tp in tps:
        holds.add(Claim(tp, 1), OffsetAndMetadata(tp.partition))
    return holds


def test_each_thing_is_told_once() -> None:
    holds, all_of_them = holding(A, B), dict.fromkeys(TPS, 1)
    assert Claim(A, 1) in holds
    assert Claim(A, 2) not in holds
    assert Claim(C, 1) not in holds
    assert holds.partitions == {A, B}
    assert holds.claims == (Claim(A, 1), Claim(B, 1))
    assert holds.update(all_of_them, {C}) == HoldChanges(NOTHING, NOTHING)
    assert holds.update(all_of_them, {A, C}) == HoldChanges(frozenset({A}), NOTHING)
    assert holds.update(all_of_them, {A}) == HoldChanges(NOTHING, NOTHING)
    assert holds.update({A: 1}, {A}) == HoldChanges(NOTHING, frozenset({B}))
    assert holds.update({A: 1}, {A}) == HoldChanges(NOTHING, NOTHING)
    assert holds.kept() == {A: OffsetAndMetadata(0)}


def test_what_was_lost_stays_lost_when_it_comes_back() -> None:
    holds = holding(A)
    assert holds.update({A: 2}, {A}) == HoldChanges(NOTHING, frozenset({A}))
    assert holds.update({A: 1}, {A}) == HoldChanges(NOTHING, NOTHING)
    assert holds.lost == {A}
    assert holds.kept() == {}


def test_what_is_read_of_a_new_assignment_is_read_again() -> None:
    holds, later = holding(A), OffsetAndMetadata(9)
    holds.add(Claim(A, 2), later)
    assert holds.claims == (Claim(A, 1), Claim(A, 2))
    assert holds.partitions == {A}
    # The loss is told, also if both were added between two looks.
    assert holds.update({A: 2}, ()) == HoldChanges(NOTHING, frozenset({A}))
    assert holds.kept() == {A: later}
    assert holds.update({A: 2}, {A}) == HoldChanges(NOTHING, NOTHING)
    assert holds.update({}, ()) == HoldChanges(NOTHING, NOTHING)
    assert holds.kept() == {}
    assert holds.lost == {A}


class Model(RuleBasedStateMachine):
    """Whatever the order: each request and each loss is told, and told once."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = TransactionHolds()
        self.numbers = dict.fromkeys(TPS, 1)
        self.serial = 1
        self.pending: set[TopicPartition] = set()
        self.held: dict[Claim, int] = {}
        self.gone: set[TopicPartition] = set()
        self.told: list[TopicPartition] = []
        self.lost: list[TopicPartition] = []

    @rule(tp=st.sampled_from(TPS))
    def hand_out(self, tp: TopicPartition) -> None:
        if tp in self.numbers and self.claim(tp) not in self.holds:
            place = len(self.held)
            self.held[self.claim(tp)] = place
            self.holds.add(self.claim(tp), OffsetAndMetadata(place))
            self.look()

    def claim(self, tp: TopicPartition) -> Claim:
        return Claim(tp, self.numbers[tp])

    @rule(tp=st.sampled_from(TPS))
    def request(self, tp: TopicPartition) -> None:
        if tp in self.numbers:
            self.pending.add(tp)
            self.look()

    @rule(tp=st.sampled_from(TPS), looks=st.booleans())
    def lose(self, tp: TopicPartition, looks: bool) -> None:
        if self.numbers.pop(tp, None) is not None:
            self.pending.discard(tp)
            if any(claim.partition == tp for claim in self.held):
                self.gone.add(tp)
            if looks:
                self.look()

    @rule(tp=st.sampled_from(TPS))
    def assign(self, tp: TopicPartition) -> None:
        if tp not in self.numbers:
            self.serial += 1
            self.numbers[tp] = self.serial
            self.look()

    def look(self) -> None:
        changes = self.holds.update(self.numbers, self.pending)
        self.told += changes.requested
        self.lost += changes.lost

    @invariant()
    def all_is_told_once(self) -> None:
        self.look()
        assert sorted(self.lost) == sorted(self.gone)
        assert len(self.told) == len({*self.told})
        worked_on = {claim.partition for claim in self.held}
        assert {*self.told} >= (self.pending & worked_on) - self.gone
        assert self.holds.kept() == {
            tp: OffsetAndMetadata(self.held[self.claim(tp)])
            for tp in self.numbers
            if self.claim(tp) in self.held
        }


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=20)
