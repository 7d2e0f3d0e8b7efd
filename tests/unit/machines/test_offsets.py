from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings, strategies as st
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
    assert set(made.unfinished) == {A}
    made.finish()
    assert made.due().offsets == {A: OffsetAndMetadata(12, leader_epoch=4)}
    assert not made.has_unfinished([A])


def test_what_is_read_again_after_a_seek_back_is_unfinished_again():
    made = ledger(A)
    made.handed(A, 15)
    made.finish()
    made.positioned(A, 11, committed=False)
    made.handed(A, 13, finished=13)  # a value below the most handed out so far
    assert due(made) == {A: 13}
    assert not made.has_unfinished([A])
    made.handed(A, 14)
    assert made.has_unfinished([A])


def test_a_position_is_apart_until_something_chosen_later_is_committed():
    made = ledger(A, B)
    assert not made.is_apart(A)
    early = made.commit_of({A: OffsetAndMetadata(12)})
    made.positioned(A, 30, committed=False)
    made.committed(early)  # was chosen before
    assert made.is_apart(A)
    made.unpositioned(A)
    made.positioned(A, 30, committed=True)
    assert made.is_apart(A)
    made.committed(made.commit_of({A: OffsetAndMetadata(30)}))
    assert not made.is_apart(A)
    made.positioned(A, 31, committed=False)
    made.perhaps_committed(A)
    assert not made.is_apart(A)
    made.positioned(B, 31, committed=False)
    made.open(B, 9)
    assert not made.is_apart(B)
    made.close(B)
    assert not made.is_apart(B)


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


def test_a_commit_sent_for_an_assignment_that_has_ended_leaves_the_next_one_alone():
    made = ledger(A)
    made.handed(A, 12)
    made.finish()
    commit = made.due()
    made.close(A)
    made.open(A, 1)
    made.positioned(A, 10, 3, committed=True)
    made.sent(commit)
    assert due(made) == {}
    made.answered(commit)
    assert due(made) == {}


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
    made.committed(made.due())
    made.positioned(A, 7, committed=False)  # where it is: there is nothing to commit
    assert due(made) == {}
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
    assert not made.is_from_old_assignment(A, 9)  # there was no other assignment
    made.close(A)
    assert not made.is_from_old_assignment(A, 4)
    made.open(A, 2)
    assert made.is_from_old_assignment(A, 4)
    made.positioned(A, 3, committed=True)
    made.handed(A, 4)
    assert made.is_from_old_assignment(A, 4)
    assert not made.is_from_old_assignment(A, 3)
    made.unpositioned(A)
    assert not made.is_from_old_assignment(A, 3)  # a seek back takes nothing back
    assert not made.is_from_old_assignment(B, 0)
    assert not made.has_handed(B)


def finished(made: OffsetLedger, to: int) -> None:
    made.handed(A, to)
    made.finish()


def at(offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {A: OffsetAndMetadata(offset, metadata="mine")}


def sent(made: OffsetLedger, commit: Commit) -> Commit:
    made.sent(commit)
    return commit


def taken(made: OffsetLedger, commit: Commit) -> None:
    made.answered(commit)
    made.committed(commit)


def test_an_older_commit_that_ends_later_makes_nothing_due():
    made = ledger(A)
    finished(made, 12)
    automatic = sent(made, made.due())  # a partition beside this one keeps it going
    finished(made, 14)
    chosen = sent(made, made.commit_of(at(5)))
    taken(made, chosen)
    taken(made, automatic)
    assert due(made) == {}
    finished(made, 15)
    assert due(made) == {A: 15}


def test_a_commit_ahead_that_ends_meanwhile_makes_nothing_due():
    made = ledger(A)
    made.handed(A, 12)
    ahead = sent(made, made.commit_of(at(12)))
    chosen = sent(made, made.commit_of(at(5)))
    taken(made, ahead)  # and so it is finished
    taken(made, chosen)
    assert due(made) == {}
    assert not made.has_unfinished([A])


def test_a_commit_of_the_user_stands_while_it_is_on_its_way():
    made = ledger(A, B)
    finished(made, 12)
    made.handed(B, 13)
    made.finish()
    chosen = sent(made, made.commit_of(at(5)))
    automatic = made.due()
    assert automatic.offsets == {**at(5), B: OffsetAndMetadata(13)}
    made.committed(automatic)
    taken(made, chosen)
    assert due(made) == {}


def test_what_is_finished_after_it_was_sent_counts_again():
    made = ledger(A)
    chosen = sent(made, made.commit_of(at(5)))
    finished(made, 12)
    assert due(made) == {A: 12}
    taken(made, chosen)
    assert due(made) == {A: 12}


def test_a_commit_that_failed_stands_for_nothing():
    made = ledger(A)
    finished(made, 12)
    made.answered(sent(made, made.commit_of(at(5))))
    assert due(made) == {A: 12}


def test_nor_does_one_of_an_old_assignment():
    made = ledger(A)
    old = sent(made, made.commit_of(at(5)))
    made.open(A, 9)
    made.positioned(A, 12, committed=False)
    assert due(made) == {A: 12}
    taken(made, old)
    assert due(made) == {A: 12}


def test_a_commit_of_just_that_leaves_nothing_to_do():
    made = ledger(A)
    made.handed(A, 12)
    chosen = sent(made, made.commit_of(at(12)))
    made.finish()
    taken(made, chosen)
    assert due(made) == {}


def test_everything_handed_out_can_be_committed() -> None:
    made = ledger(A, B)
    made.handed(A, 12, 4)
    made.handed(B, 15, 4)
    made.finish_of(A)
    commit = sent(made, made.finished())
    assert commit.offsets == {A: OffsetAndMetadata(12, leader_epoch=4)}
    made.handed(A, 14, 4)
    assert due(made) == {A: 12}
    taken(made, commit)
    assert due(made) == {}
    assert made.finished().offsets == {}
    made.finish_of(B)
    assert made.finished([A]).offsets == {}
    assert made.finished([B]).offsets == {B: OffsetAndMetadata(15, leader_epoch=4)}


def test_it_goes_over_what_the_user_chose_before() -> None:
    made = ledger(A)
    finished(made, 12)
    taken(made, sent(made, made.commit_of(at(5))))
    assert due(made) == {}
    assert made.finished().offsets == {A: OffsetAndMetadata(12)}


def test_what_the_broker_has_is_unknown_until_it_answers() -> None:
    made = ledger(A)
    finished(made, 12)
    taken(made, sent(made, made.finished()))
    lost = sent(made, made.commit_of(at(5)))
    assert made.finished().offsets == {A: OffsetAndMetadata(12)}
    made.answered(lost)  # but not taken, or so it seems
    again = sent(made, made.finished())
    assert again.offsets == {A: OffsetAndMetadata(12)}
    taken(made, again)
    assert made.finished().offsets == {}


class Standing:
    """A ledger, a broker, and what is to stand there in the end."""

    def __init__(self) -> None:
        self.ledger = ledger(A)
        self.handed = self.done = self.stands = 10
        # The broker takes commits in the order in which they were made.
        self.there = 10
        # With each, whether all that it commits had been handed out.
        self.going: list[tuple[Commit, bool]] = []

    def hand_out(self, count: int) -> None:
        self.handed += count
        self.ledger.handed(A, self.handed)

    def finish(self, _: int) -> None:
        self.ledger.finish()
        if self.handed != self.done:
            self.stands = self.done = self.handed

    def choose(self, offset: int) -> None:
        self.stands = offset
        self._send(self.ledger.commit_of(at(offset)))

    def commit(self, _: int = 0) -> None:
        self._send(self.ledger.due())

    def commit_all(self, _: int) -> None:
        """The user commits everything that was handed out."""
        self.stands = self.done = self.handed
        self.ledger.finish_of(A)
        self._send(self.ledger.finished())
        assert self.there == self.handed

    def _send(self, commit: Commit) -> None:
        if commit.offsets:
            self.there = commit.offsets[A].offset
            is_done = self.there <= self.handed
            self.going.append((sent(self.ledger, commit), is_done))

    def end(self, number: int) -> None:
        if not self.going:
            return
        commit, is_done = self.going.pop(number % len(self.going))
        taken(self.ledger, commit)
        offset = commit.offsets[A].offset
        if self.done < offset and is_done:
            self.done = offset  # as the user said by committing it


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    Standing.hand_out,
                    Standing.finish,
                    Standing.choose,
                    Standing.commit,
                    Standing.commit_all,
                    Standing.end,
                ]
            ),
            st.integers(0, 30),
        ),
        max_size=30,
    )
)
def test_what_the_user_chose_stands_until_more_is_finished(
    steps: list[tuple[Callable[[Standing, int], None], int]],
) -> None:
    it = Standing()
    for step, number in steps:
        step(it, number)
    while it.going:
        it.end(0)
    it.commit()
    assert it.there == it.stands


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
    @rule(count=st.integers(0, 5), left=st.integers(0, 7))
    def hand_out_and_finish(self, count: int, left: int) -> None:
        self.handed += count
        finished = self.handed - left
        self.ledger.handed(A, self.handed, finished=finished)
        self.finished = max(self.finished, finished)

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

    @precondition(lambda self: self.number)
    @rule()
    def begin_commit_of_all(self) -> None:
        self.ledger.finish_of(A)
        self.finished = self.handed
        commit = self.ledger.finished([A])
        self.ledger.sent(commit)
        self.commits.append(commit)
        assert {at.offset for at in commit.offsets.values()} <= {self.handed}

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

    @invariant()
    def a_commit_of_all_leaves_out_what_the_broker_has_alone(self) -> None:
        wanted = {
            tp: entry.finished
            for tp, entry in self.ledger._entries.items()
            if entry.finished >= 0
            and (entry.finished != entry.committed or entry.is_due)
        }
        found = self.ledger.finished().offsets
        assert {tp: at.offset for tp, at in found.items()} == wanted


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(max_examples=60)


def test_a_commit_goes_on_behind_what_was_skipped() -> None:
    ledger = OffsetLedger()
    ledger.open(A, 1)
    ledger.positioned(A, 0, committed=True)
    ledger.handed(A, 3, 1)
    ledger.skipped(A, 4, 1)
    ledger.skipped(A, 6, 2)
    places = [ledger.after(A, OffsetAndMetadata(n, "m")) for n in range(1, 8)]
    assert [at.offset for at in places] == [1, 2, 6, 6, 6, 6, 7]
    assert places[2] == OffsetAndMetadata(6, "m", 2)
    ledger.handed(A, 7, 2)  # the part that was skipped is still the last
    assert ledger.after(A, OffsetAndMetadata(3)).offset == 6
    ledger.skipped(A, 8, 2)
    assert ledger.after(A, OffsetAndMetadata(3)).offset == 3
    assert ledger.after(A, OffsetAndMetadata(7)).offset == 8


def test_what_was_skipped_before_a_seek_counts_no_more() -> None:
    ledger = OffsetLedger()
    ledger.open(A, 1)
    assert ledger.after(A, OffsetAndMetadata(3)).offset == 3
    ledger.positioned(A, 3, committed=True)
    ledger.skipped(A, 4)
    ledger.positioned(A, 2, committed=False)
    assert ledger.after(A, OffsetAndMetadata(3)).offset == 3
    ledger.close(A)
    assert ledger.after(A, OffsetAndMetadata(3)).offset == 3


def test_a_part_of_a_commit_that_succeeded_counts() -> None:
    ledger = OffsetLedger()
    for tp in (A, B):
        ledger.open(tp, 1)
        ledger.positioned(tp, 0, committed=True)
        ledger.handed(tp, 3, finished=3)
    commit = ledger.due()
    ledger.sent(commit)
    assert ledger.in_flight({A}) == ledger.in_flight({A, B}) == {commit.serial}
    assert not ledger.in_flight({TopicPartition("other", 0)})
    ledger.answered(commit)
    ledger.committed(commit.of({B}))
    assert ledger.is_due(A)
    assert not ledger.is_due(B)
    assert not ledger.in_flight({A})
    assert ledger.due().offsets.keys() == {A}
