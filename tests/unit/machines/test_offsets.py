from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.offsets import Commit, OffsetLedger
from kafkaio.types import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def ledger(*partitions: TopicPartition) -> OffsetLedger:
    made = OffsetLedger()
    for number, tp in enumerate(partitions):
        made.open(tp, number)
        made.positioned(tp, 10, 3, committed=True)
    return made


def due(made: OffsetLedger) -> dict[TopicPartition, int]:
    return {tp: at.offset for tp, at in made.due().offsets.items()}


def test_handed_out_is_not_finished():
    made = ledger(A, B)
    made.handed(A, 12, 4)
    assert due(made) == {}
    assert made.has_unfinished([A])
    assert not made.has_unfinished([B])
    made.finish()
    assert made.due().offsets == {A: OffsetAndMetadata(12, leader_epoch=4)}
    assert not made.has_unfinished([A])


def test_a_part_can_be_finished():
    made = ledger(A)
    made.handed(A, 15)
    made.finished_to(A, 13, 1)
    assert due(made) == {A: 13}
    assert made.has_unfinished([A])
    made.finished_to(A, 12)  # goes back nowhere
    made.finished_to(A, 16)  # was not handed out
    assert due(made) == {A: 13}
    made.finished_to(A, 15)
    assert not made.has_unfinished([A])


def test_one_partition_can_be_finished_alone():
    made = ledger(A, B)
    for tp in (A, B):
        made.handed(tp, 15, 4)
    made.finished_to(A, 12, 4)
    assert made.unfinished_from(A) == OffsetAndMetadata(12, leader_epoch=4)
    assert made.is_due(A)
    assert not made.is_due(B)
    made.finish_of(A)
    made.finish_of(A)
    assert made.unfinished_from(A) is None
    assert made.unfinished_from(B) == OffsetAndMetadata(10, leader_epoch=3)
    assert due(made) == {A: 15}


def test_what_was_left_out_counts_once_all_before_it_is_finished():
    made = ledger(A)
    made.skipped(A, 11)
    assert due(made) == {A: 11}
    made.handed(A, 12)
    made.skipped(A, 13)
    assert due(made) == {A: 11}
    made.finish()
    assert due(made) == {A: 13}
    made.skipped(A, 12)
    made.handed(A, 12)
    assert due(made) == {A: 13}


def test_a_commit_is_due_once():
    made = ledger(A, B)
    made.handed(A, 12)
    made.finish()
    commit = made.due([A])
    assert made.due([B]).offsets == {}
    made.handed(A, 14)
    made.finish()
    made.committed(commit)
    assert due(made) == {A: 14}  # finished while the commit was under way
    made.committed(made.due())
    assert due(made) == {}


def test_a_reset_position_is_committed_and_a_committed_one_is_not():
    made = OffsetLedger()
    made.open(A, 1)
    assert due(made) == {}
    made.positioned(A, 7, committed=False)
    assert due(made) == {A: 7}
    made.unpositioned(A)
    assert due(made) == {}
    assert made.number(A) == 1


def test_a_commit_of_the_user_stands():
    made = ledger(A)
    made.handed(A, 15)
    made.committed(made.commit_of({A: OffsetAndMetadata(15), B: OffsetAndMetadata(1)}))
    assert due(made) == {}
    assert not made.has_unfinished([A])  # who commits it says that it is finished
    made.committed(made.commit_of({A: OffsetAndMetadata(2)}))
    assert due(made) == {}
    made.handed(A, 16)
    made.finish()
    assert due(made) == {A: 16}


def test_a_commit_of_an_assignment_that_ended_changes_nothing():
    made = ledger(A)
    made.handed(A, 12)
    made.finish()
    commit = made.due()
    made.open(A, 9)
    made.positioned(A, 12, committed=False)
    made.committed(commit)
    assert due(made) == {A: 12}
    made.close(A)
    made.close(A)
    made.committed(commit)
    assert A not in made
    assert made.number(A) is None
    assert "0 partitions" in repr(made)


def test_what_is_kept_is_not_finished_by_a_step() -> None:
    made = OffsetLedger()
    for tp in (A, B):
        made.open(tp, 1)
        made.positioned(tp, 0, committed=True)
        made.handed(tp, 5)
    made.keep([A])
    made.keep([B])
    made.finish()
    assert made.has_unfinished([A])
    assert made.due().offsets == {}
    made.close(B)
    made.keep([])
    made.finish()
    assert made.due().offsets == {A: OffsetAndMetadata(5)}


def test_records_of_an_old_assignment_are_known_for_that() -> None:
    made = OffsetLedger()
    made.open(A, 1)
    made.positioned(A, 0, committed=True)
    assert not made.has_handed(A)
    made.handed(A, 5)
    assert made.has_handed(A)
    assert not made.is_of_old(A, 9)  # there was no other assignment
    made.close(A)
    assert not made.is_of_old(A, 4)
    made.open(A, 2)
    assert made.is_of_old(A, 4)
    made.positioned(A, 3, committed=True)
    made.handed(A, 4)
    assert made.is_of_old(A, 4)
    assert not made.is_of_old(A, 3)
    made.unpositioned(A)
    assert not made.is_of_old(A, 3)  # a seek back takes nothing back
    assert not made.is_of_old(B, 0)
    assert not made.has_handed(B)


class LedgerLaws(RuleBasedStateMachine):
    """committed <= finished <= handed, and nothing of another assignment counts."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = OffsetLedger()
        self.number = 0
        self.handed = self.finished = -1
        self.commits: list[Commit] = []

    @rule(offset=st.integers(0, 50), committed=st.booleans())
    def assign(self, offset: int, committed: bool) -> None:
        self.number += 1
        self.ledger.open(A, self.number)
        self.ledger.positioned(A, offset, committed=committed)
        self.handed = self.finished = offset

    @precondition(lambda self: self.number)
    @rule(count=st.integers(0, 5))
    def hand_out(self, count: int) -> None:
        self.handed += count
        self.ledger.handed(A, self.handed)

    @precondition(lambda self: self.number)
    @rule(count=st.integers(1, 5))
    def leave_out(self, count: int) -> None:
        if self.finished == self.handed:
            self.finished += count
        self.handed += count
        self.ledger.skipped(A, self.handed)

    @rule()
    def step(self) -> None:
        self.ledger.finish()
        self.finished = self.handed

    @rule()
    def begin_commit(self) -> None:
        self.commits.append(self.ledger.due())

    @precondition(lambda self: self.commits)
    @rule()
    def end_commit(self) -> None:
        commit = self.commits.pop()
        self.ledger.committed(commit)
        if commit.numbers.get(A) == self.number:
            assert commit.offsets[A].offset <= self.finished

    @invariant()
    def only_finished_records_are_due(self) -> None:
        for at in self.ledger.due().offsets.values():
            assert at.offset == self.finished
        unfinished = self.ledger.has_unfinished([A])
        assert unfinished == (self.finished != self.handed)


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(deadline=None, max_examples=60)
