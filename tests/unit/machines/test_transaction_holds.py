"""Which partitions a transaction works on, and what it hears of them."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.transaction_holds import Changes, TransactionHolds
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
    assert A in holds
    assert C not in holds
    assert holds.partitions == {A, B}
    assert holds.claims == (Claim(A, 1), Claim(B, 1))
    assert holds.look(all_of_them, {C}) == Changes(NOTHING, NOTHING)
    assert holds.look(all_of_them, {A, C}) == Changes(frozenset({A}), NOTHING)
    assert holds.look(all_of_them, {A}) == Changes(NOTHING, NOTHING)
    assert holds.look({A: 1}, {A}) == Changes(NOTHING, frozenset({B}))
    assert holds.look({A: 1}, {A}) == Changes(NOTHING, NOTHING)
    assert holds.kept() == {A: OffsetAndMetadata(0)}


def test_what_was_lost_stays_lost_when_it_comes_back() -> None:
    holds = holding(A)
    assert holds.look({A: 2}, {A}) == Changes(NOTHING, frozenset({A}))
    assert holds.look({A: 1}, {A}) == Changes(NOTHING, NOTHING)
    assert holds.lost == {A}
    assert holds.kept() == {}


class Model(RuleBasedStateMachine):
    """Whatever the order: each request and each loss is told, and told once."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = TransactionHolds()
        self.numbers = dict.fromkeys(TPS, 1)
        self.serial = 1
        self.pending: set[TopicPartition] = set()
        self.held: dict[TopicPartition, int] = {}
        self.gone: set[TopicPartition] = set()
        self.told: list[TopicPartition] = []
        self.lost: list[TopicPartition] = []

    @rule(tp=st.sampled_from(TPS))
    def hand_out(self, tp: TopicPartition) -> None:
        if tp in self.numbers and tp not in self.held:
            self.held[tp] = self.numbers[tp]
            self.holds.add(Claim(tp, self.numbers[tp]), OffsetAndMetadata(0))
            self.look()

    @rule(tp=st.sampled_from(TPS))
    def request(self, tp: TopicPartition) -> None:
        if tp in self.numbers:
            self.pending.add(tp)
            self.look()

    @rule(tp=st.sampled_from(TPS), looks=st.booleans())
    def lose(self, tp: TopicPartition, looks: bool) -> None:
        if self.numbers.pop(tp, None) is not None:
            self.pending.discard(tp)
            if tp in self.held:
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
        changes = self.holds.look(self.numbers, self.pending)
        self.told += changes.requested
        self.lost += changes.lost

    @invariant()
    def all_is_told_once(self) -> None:
        self.look()
        assert sorted(self.lost) == sorted(self.gone)
        assert len(self.told) == len({*self.told})
        assert {*self.told} >= (self.pending & self.held.keys()) - self.gone
        assert self.holds.kept().keys() == self.held.keys() - self.gone


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
