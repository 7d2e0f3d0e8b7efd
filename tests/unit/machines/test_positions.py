from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.positions import (
    TRANSITIONS,
    FetchPoint,
    PositionEvent,
    Positions,
    PositionStage,
    PositionToken,
    Reset,
    ResetTo,
    Truncation,
    Unvalidated,
)
from kafkaio.errors import InternalError
from kafkaio.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
LATEST, EARLIEST = Reset(ResetTo.LATEST), Reset(ResetTo.EARLIEST)


def positions(policy: Reset | None = LATEST, *partitions: TopicPartition) -> Positions:
    made = Positions(policy)
    for tp in partitions or (A,):
        made.assign(tp, has_commits=True)
    return made


def fetching(offset: int = 10, policy: Reset | None = LATEST) -> Positions:
    made = positions(policy)
    assert made.committed_found(A, made[A].token, offset, 2)
    made.validated(A, made[A].token, 2)
    return made


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("latest", LATEST),
        ("earliest", EARLIEST),
        ("none", None),
        ("by_duration:PT1H", Reset(ResetTo.DURATION, 3_600_000)),
        ("by_duration:PT0S", Reset(ResetTo.DURATION, 0)),
    ],
)
def test_policies(text: str, reset: Reset | None):
    assert Reset.of(text) == reset


def test_the_committed_offset_comes_first():
    made = positions()
    token = made[A].token
    assert made.unpositioned(0) == {A: token}
    assert made.resetting(0) == {}
    assert made.fetchable(0) == []
    assert not made.is_settled()
    assert made.committed_found(A, token, 7, 3)
    assert made.validating(0) == {A: Unvalidated(made[A].token, 7, 3)}
    assert made.fetchable(0) == []
    assert not made.is_settled()
    made.validated(A, made[A].token, 5)
    assert made.fetchable(0) == [FetchPoint(A, 7, made[A].token)]
    assert (made[A].position, made[A].position_epoch) == (7, 3)
    assert made.is_settled()


def test_without_a_committed_offset_the_policy_counts():
    made = positions()
    assert not made.committed_missing(A, made[A].token)
    token = made[A].token
    assert made.resetting(0) == {A: (token, LATEST)}
    assert made.reset_found(A, token, 4)
    assert made.fetchable(0) == [FetchPoint(A, 4, made[A].token)]


def test_without_a_group_the_policy_counts_at_once():
    made = Positions(EARLIEST)
    assert made.assign(A, has_commits=False) == 1
    assert made.resetting(0) == {A: (PositionToken(1, 1), EARLIEST)}


def test_without_a_policy_only_a_seek_helps():
    made = positions(None)
    assert made.committed_missing(A, made[A].token)
    assert set(made.without_offset()) == {A}
    assert made.is_settled()
    made.seek(A, 3)
    assert not made.without_offset()
    assert made.out_of_range(A, made[A].token)
    assert set(made.without_offset()) == {A}
    made.seek_to(A, EARLIEST)
    assert not made.without_offset()
    assert made.resetting(0) == {A: (made[A].token, EARLIEST)}


def test_unassigning_or_assigning_again_ends_the_need_for_a_seek():
    made = positions(None, A, B)
    for tp in (A, B):
        assert made.committed_missing(tp, made[tp].token)
    made.unassign(A)
    assert set(made.without_offset()) == {B}
    made.assign(B, has_commits=True)
    assert not made.without_offset()
    assert set(made.unpositioned(0)) == {B}


def test_a_seek_during_a_lookup_wins():
    made = positions(LATEST, A, B)
    asked = {tp: made[tp].token for tp in (A, B)}
    made.seek(A, 99, 5)
    assert not made.committed_found(A, asked[A], 1)
    assert not made.committed_missing(A, asked[A])
    made.seek_to(B, EARLIEST)
    old = made[B].token
    made.seek_to(B, LATEST)
    assert not made.reset_found(B, old, 1)
    assert made[A].position == 99
    assert made.resetting(0) == {B: (made[B].token, LATEST)}


def test_a_new_assignment_is_another_one():
    made = fetching()
    (point,) = made.fetchable(0)
    made.assign(A, has_commits=True)
    assert not made.accepts(point)
    made.unassign(A)
    made.unassign(A)
    assert not made.accepts(point)
    assert made.get(A) is None
    assert A not in made
    assert not made.committed_found(A, point.token, 1)
    assert not made.out_of_range(A, point.token)
    made.retry_later(A, point.token, 5)


def test_answers_that_still_fit_are_accepted():
    made = fetching(10)
    (point,) = made.fetchable(0)
    assert made.accepts(point)
    made.pause(A)
    assert made.accepts(point)  # it is kept until the pause ends
    assert made.fetchable(0) == []
    made.resume(A)
    made.fetched(A, 20)
    assert not made.accepts(point)
    (point,) = made.fetchable(0)
    assert point.offset == 20
    made.seek(A, 20)
    assert not made.accepts(point)
    (point,) = made.fetchable(0)
    made.revoke_requested(A)
    assert not made.accepts(point)
    assert made.fetchable(0) == []
    made.seek_to(A, LATEST)
    assert not made.accepts(FetchPoint(A, -1, made[A].token))


def test_a_revoke_keeps_the_position():
    made = fetching(10)
    made.fetched(A, 20)
    made.advance(A, 15, 2)
    made.revoke_requested(A)
    assert made[A].position == 15
    made = positions()
    made.revoke_requested(A)
    assert made.unpositioned(0) == {}
    assert made.is_settled()


def test_a_reset_during_a_requested_revocation_is_looked_up():
    made = fetching(10)
    made.revoke_requested(A)
    made.seek_to(A, EARLIEST)
    token = made[A].token
    assert made.resetting(0) == {A: (token, EARLIEST)}
    assert made.is_settled()  # nobody waits for it to begin
    assert made.reset_found(A, token, 3)
    assert made[A].position == 3
    assert made.fetchable(0) == []


def test_out_of_range_follows_the_policy_again():
    made = fetching()
    made.seek_to(A, EARLIEST)
    made.reset_found(A, made[A].token, 0)
    (point,) = made.fetchable(0)
    assert not made.out_of_range(A, point.token)
    assert made.resetting(0) == {A: (made[A].token, LATEST)}
    assert not made.out_of_range(A, made[A].token)  # it is being looked up already
    assert not made.committed_missing(A, made[A].token)


def test_failures_wait():
    made = positions(LATEST, A, B)
    made.retry_later(A, made[A].token, 5.0)
    made.retry_later(B, made[B].token, 7.0)
    assert made.unpositioned(4.9) == {}
    assert made.next_retry(4.9) == 5.0
    assert list(made.unpositioned(5.0)) == [A]
    assert made.next_retry(5.0) == 7.0
    assert made.next_retry(7.0) is None
    assert made[A].attempts == 1
    made.committed_found(A, made[A].token, 1)
    assert made[A].attempts == 0


def test_what_was_buffered_can_be_fetched_again():
    made = fetching(10)
    made.fetched(A, 20)
    made.advance(A, 12, 2)
    made.fetch_again(A)
    assert [p.offset for p in made.fetchable(0)] == [12]


def test_a_fetch_point_is_new_only_when_it_changes():
    made = fetching(10)
    (point,) = made.fetchable(0)
    assert made.fetchable(0)[0] is point
    made.fetched(A, 15)
    assert made.fetchable(0) == [FetchPoint(A, 15, point.token)]
    made.seek(A, 15)
    (sought,) = made.fetchable(0)
    assert sought == FetchPoint(A, 15, made[A].token)
    assert not made.accepts(FetchPoint(A, 15, point.token))
    assert made.accepts(sought)


def test_a_position_never_goes_back_by_itself():
    made = fetching(10)
    with pytest.raises(InternalError, match="went back"):
        made.fetched(A, 9)
    made.fetched(A, 20)
    made.advance(A, 15, 1)
    for offset in (14, 21):
        with pytest.raises(InternalError, match="cannot go to"):
            made.advance(A, offset, 1)
    assert made[A].position == 15


# ---- agreeing with the leader (KIP-320) ---------------------------------------------


def test_a_position_without_an_epoch_is_taken_at_its_word():
    made = positions()
    made.seek(A, 4)
    assert made.fetchable(0)
    assert not made.leader_seen(A, 7)
    assert made[A].leader_epoch == 7


def test_another_leader_has_to_agree():
    made = fetching(10)
    (point,) = made.fetchable(0)
    made.fetched(A, 20)
    made.advance(A, 12, 3)
    assert not made.leader_seen(A, 2)  # the one that it was validated with
    assert not made.leader_seen(A, -1)
    assert not made.leader_seen(A, 3)  # which wrote the last record itself
    assert made.leader_seen(A, 4)
    assert not made.leader_seen(A, 5)  # asked about already
    assert made.validating(0) == {A: Unvalidated(made[A].token, 12, 3)}
    assert made.fetchable(0) == []
    assert not made.accepts(point)
    made.retry_later(A, made[A].token, 1.0)
    assert made.validating(0) == {}
    made.validated(A, made[A].token, 4)
    assert (made[A].attempts, made[A].leader_epoch) == (0, 4)
    assert [p.offset for p in made.fetchable(0)] == [12]
    assert not made.accepts(point)
    made.validated(A, made[A].token, 9)  # nobody asked
    assert made[A].leader_epoch == 4


def test_a_cut_log_is_read_from_the_cut():
    made = fetching(10)
    made.leader_seen(A, 4)
    old = made[A].token
    assert made.diverged(A, old, 6, 1, 4) == Truncation(10, 6)
    entry = made[A]
    assert entry.stage is PositionStage.FETCHING
    assert (entry.position, entry.position_epoch, entry.leader_epoch) == (6, 1, 4)
    assert made.diverged(A, old, 3, 1, 4) is None
    assert made.diverged(A, entry.token, 3, 1, 4) is None
    assert not made.leader_seen(A, 4)


def test_a_log_that_knows_nothing_of_what_was_read_is_reset():
    made = fetching(10)
    made.leader_seen(A, 4)
    assert made.diverged(A, made[A].token, -1, -1, 4) == Truncation(10, -1)
    assert made.resetting(0) == {A: (made[A].token, LATEST)}


@pytest.mark.parametrize("end", [6, -1])
def test_a_truncated_log_without_a_policy_leaves_no_offset(end: int):
    made = fetching(10, policy=None)
    made.leader_seen(A, 4)
    assert made.diverged(A, made[A].token, end, 1, 4) == Truncation(10, end)
    assert set(made.without_offset()) == {A}
    assert made[A].truncation == Truncation(10, end)
    made.seek(A, 6)
    assert made[A].truncation is None
    assert made.fetchable(0)


def test_back_to_the_committed_offset():
    made = fetching(10)
    old = made[A].token
    made.pause(A)
    made.seek_to_committed(A)
    assert made[A].position == -1
    assert made.unpositioned(0) == {A: made[A].token}
    assert not made.committed_found(A, old, 7)
    assert made.is_looking_for_commit(A)
    assert made.committed_found(A, made[A].token, 4)
    assert not made.is_looking_for_commit(A)
    assert (made[A].position, made[A].is_paused) == (4, True)
    made.seek_to_committed(A)
    made.revoke_requested(A)
    assert not made.is_looking_for_commit(A)
    made.unassign(A)
    assert not made.is_looking_for_commit(A)


@pytest.mark.parametrize(
    ("stage", "event"), list(itertools.product(PositionStage, PositionEvent))
)
def test_the_whole_table(stage: PositionStage, event: PositionEvent):
    made = positions(None)
    if stage is PositionStage.NO_OFFSET:
        assert made.committed_missing(A, made[A].token)
    elif stage is PositionStage.FETCHING:
        made.seek(A, 1)
    elif stage is PositionStage.VALIDATING:
        made.seek(A, 1, 0)
    elif stage is PositionStage.RESETTING:
        made.seek_to(A, EARLIEST)
    assert made[A].stage is stage
    if (stage, event) in TRANSITIONS:
        made._fire(A, made[A], event)
        assert made[A].stage is TRANSITIONS[stage, event]
    else:
        with pytest.raises(InternalError, match=f"{event.name} while {stage.name}"):
            made._fire(A, made[A], event)
        assert made[A].stage is stage
    assert [s for s in PositionStage if A in made._stages[s]] == [made[A].stage]


def test_looking_inside():
    made = positions(LATEST, A, B)
    made.seek(A, 1)
    assert repr(made) == "<Positions 1 fetching, 1 unpositioned>"
    assert repr(Positions(None)) == "<Positions none>"
    assert list(made) == [A, B]
    assert len(made) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.assign(A, has_commits=True),
        lambda made: made.assign(B, has_commits=False),
        lambda made: made.unassign(A),
        lambda made: made.revoke_requested(A),
        lambda made: made.pause(A),
        lambda made: (made.pause(A), made.resume(A)),
        lambda made: made.retry_later(A, made[A].token, 5.0),
        lambda made: made.fetched(A, 20),
        lambda made: made.fetch_again(A),
        lambda made: made.seek(A, 10),
    ],
)
def test_changes_are_counted(change: Callable[[Positions], object]):
    made = fetching()
    before = made.changes
    assert made.fetchable(0.0)
    change(made)
    assert made.changes > before


class PositionLaws(RuleBasedStateMachine):
    """Without a seek or a reset the position only grows; old tokens change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.made = Positions(LATEST)
        self.number = self.made.assign(A, has_commits=True)
        self.tokens = [self.made[A].token]
        self.low = -1
        self.seen = (self.made.changes, self.made.fetchable(0.0))

    @rule(offset=st.integers(0, 50), epoch=st.integers(-1, 3))
    def seek(self, offset: int, epoch: int) -> None:
        self.made.seek(A, offset, epoch)
        self.low = offset
        self.remember()

    @rule()
    def reset(self) -> None:
        self.made.seek_to(A, EARLIEST)
        self.low = -1
        self.remember()

    @rule()
    def rewind(self) -> None:
        self.made.seek_to_committed(A)
        assert self.made.is_looking_for_commit(A)
        self.low = -1
        self.remember()

    @rule(index=st.integers(0, 3), offset=st.integers(0, 50))
    def answer(self, index: int, offset: int) -> None:
        token = self.tokens[-1 - index % len(self.tokens)]
        before = self.made[A].position
        if self.made[A].stage is PositionStage.UNPOSITIONED:
            found = self.made.committed_found(A, token, offset)
        elif self.made[A].stage is PositionStage.RESETTING:
            found = self.made.reset_found(A, token, offset)
        else:
            return
        assert found == (index % len(self.tokens) == 0)
        assert found or self.made[A].position == before
        if found:
            self.low = offset
            self.remember()

    @precondition(lambda self: self.made[A].stage is PositionStage.FETCHING)
    @rule(count=st.integers(0, 5))
    def fetched(self, count: int) -> None:
        self.made.fetched(A, self.made[A].fetch_offset + count)

    @precondition(lambda self: self.made[A].stage is PositionStage.FETCHING)
    @rule(share=st.integers(0, 5))
    def taken(self, share: int) -> None:
        entry = self.made[A]
        to = min(entry.fetch_offset, entry.position + share)
        self.made.advance(A, to, 0)

    @rule(index=st.integers(0, 3))
    def out_of_range(self, index: int) -> None:
        token = self.tokens[-1 - index % len(self.tokens)]
        before = self.made[A].position
        self.made.out_of_range(A, token)
        if self.made[A].stage is PositionStage.RESETTING:
            self.low = -1
            self.remember()
        else:
            assert self.made[A].position == before

    @precondition(lambda self: self.made[A].stage is PositionStage.FETCHING)
    @rule(epoch=st.integers(0, 5))
    def leader(self, epoch: int) -> None:
        before = self.made[A].position
        assert self.made.leader_seen(A, epoch) == bool(self.made.validating(0))
        assert self.made[A].position == before
        self.remember()

    @precondition(lambda self: self.made[A].stage is PositionStage.VALIDATING)
    @rule(index=st.integers(0, 3), end=st.integers(-1, 50))
    def answer_about_the_epoch(self, index: int, end: int) -> None:
        token = self.tokens[-1 - index % len(self.tokens)]
        position = self.made[A].position
        is_current = token == self.made[A].token
        if end >= position:
            self.made.validated(A, token, 5)
            assert (self.made[A].stage is PositionStage.FETCHING) == is_current
            return
        cut = self.made.diverged(A, token, end, 0, 5)
        assert cut == (Truncation(position, end) if is_current else None)
        if is_current:
            assert self.made[A].position == end
            self.low = end
            self.remember()

    def remember(self) -> None:
        if self.made[A].token != self.tokens[-1]:
            self.tokens.append(self.made[A].token)

    @invariant()
    def changes_are_counted(self) -> None:
        changes, fetchable = self.seen
        self.seen = (self.made.changes, self.made.fetchable(0.0))
        assert self.seen[0] > changes or self.seen[1] == fetchable

    @invariant()
    def never_back(self) -> None:
        entry = self.made[A]
        assert entry.position >= self.low
        assert entry.fetch_offset >= entry.position
        self.low = entry.position


TestPositionLaws = PositionLaws.TestCase
TestPositionLaws.settings = settings(max_examples=60)
