from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaio._machines.share.session import SessionPlan, ShareSession, TopicIdPartition
from kafkaio.errors import InternalError
from kafkaio.protocol._error_codes import ErrorCode as E

A, B, C = (TopicIdPartition(UUID(int=1), n) for n in range(3))
ENDING = [
    E.SHARE_SESSION_NOT_FOUND,
    E.INVALID_SHARE_SESSION_EPOCH,
    E.SHARE_SESSION_LIMIT_REACHED,
]


def opened(*partitions: TopicIdPartition) -> ShareSession:
    session = ShareSession()
    session.answered(session.fetch(partitions), 0)
    return session


def test_epoch_0_opens_with_all_partitions():
    session = ShareSession()
    plan = session.fetch([A, B])
    assert plan == SessionPlan(0, (A, B), ())
    assert not session.is_open
    assert session.fetch([A, B]) == plan  # planning changes nothing
    session.answered(plan, 0)
    assert session.is_open
    assert session.fetch([A, B]) == SessionPlan(1, (), ())


def test_only_changes_are_sent():
    session = opened(A, B)
    plan = session.fetch([B, C, C])
    assert plan == SessionPlan(1, (C,), (A,))
    session.answered(plan, 0)
    assert set(session.partitions) == {B, C}
    plan = session.acknowledge()
    assert plan == SessionPlan(2, (), ())
    session.answered(plan, 0)
    assert session.fetch([]) == SessionPlan(3, (), (B, C))


def test_acknowledgements_need_an_open_session():
    session = ShareSession()
    with pytest.raises(InternalError):
        session.acknowledge()
    session.fetch([A])
    with pytest.raises(InternalError):
        session.acknowledge()


def test_the_epoch_after_the_last_is_1():
    session = opened(A)
    session.answered(SessionPlan(2**31 - 1, (), ()), 0)
    assert session.acknowledge().epoch == 1


@pytest.mark.parametrize("code", ENDING)
def test_errors_that_end_the_session(code: E):
    session = opened(A)
    session.answered(session.acknowledge(), code)
    assert not session.is_open
    assert session.fetch([A]) == SessionPlan(0, (A,), ())


@pytest.mark.parametrize("code", [E.UNKNOWN_SERVER_ERROR, E.INVALID_REQUEST])
def test_other_errors_at_the_top_advance_it(code: E):
    session = opened(A)
    session.answered(session.acknowledge(), code)
    assert session.fetch([A]) == SessionPlan(2, (), ())
    # But whether partitions were changed is unknown.
    session.answered(session.fetch([A, B]), code)
    assert session.fetch([A, B]) == SessionPlan(0, (A, B), ())
    # And so is whether there is a session at all.
    session.answered(session.fetch([A, B]), code)
    assert not session.is_open


def test_a_lost_answer_leaves_the_epoch_in_doubt():
    session = opened(A)
    session.unanswered(session.acknowledge())
    assert not session.is_open
    assert session.fetch([A]) == SessionPlan(0, (A,), ())
    # There may be a session, so that closing it is worth a request.
    assert session.close() == SessionPlan(-1, (), ())


def test_close():
    assert ShareSession().close() is None
    session = opened(A)
    plan = session.close()
    assert plan == SessionPlan(-1, (), ())
    session.answered(plan, 0)
    assert session.close() is None
    session = opened(A)
    session.reset()  # the connection is gone, and the session with it
    assert session.close() is None
    session = opened(A)
    session.broken()
    assert session.close() is not None
    session = opened(A)
    session.answered(session.acknowledge(), E.SHARE_SESSION_NOT_FOUND)
    assert session.close() is None


class SessionLaws(RuleBasedStateMachine):
    """A session with a leader that checks epochs as Kafka does."""

    def __init__(self) -> None:
        super().__init__()
        self.session = ShareSession()
        self.epoch: int | None = None
        self.partitions: set[TopicIdPartition] = set()
        self.refusals = 0

    def serve(self, plan: SessionPlan) -> int:
        if plan.epoch == 0:
            self.epoch, self.partitions = 1, set(plan.added)
            assert not plan.forgotten
            return 0
        if self.epoch is None:
            return E.SHARE_SESSION_NOT_FOUND
        if plan.epoch != self.epoch:
            return E.INVALID_SHARE_SESSION_EPOCH
        self.epoch += 1
        assert not self.partitions & set(plan.added)
        assert self.partitions >= set(plan.forgotten)
        self.partitions = (self.partitions | set(plan.added)) - set(plan.forgotten)
        return 0

    @rule(
        wanted=st.sets(st.sampled_from([A, B, C])),
        fate=st.sampled_from(["fine", "fine", "lost", "unheard", "refused"]),
    )
    def fetch(self, wanted: set[TopicIdPartition], fate: str) -> None:
        self.perform(self.session.fetch(wanted), fate)
        if self.session.is_open and fate == "fine":
            assert self.partitions == wanted == set(self.session.partitions)

    @precondition(lambda self: self.session.is_open)
    @rule(fate=st.sampled_from(["fine", "fine", "lost", "unheard", "refused"]))
    def acknowledge(self, fate: str) -> None:
        self.perform(self.session.acknowledge(), fate)

    def perform(self, plan: SessionPlan, fate: str) -> None:
        if fate == "unheard":
            self.session.unanswered(plan)
        elif fate == "refused":  # below the top of the session, in its epoch
            if self.serve(plan) == 0 and plan.epoch != 0:
                self.session.answered(plan, E.UNKNOWN_SERVER_ERROR)
            else:
                self.session.unanswered(plan)
        else:
            code = self.serve(plan)
            if fate == "lost":
                self.session.unanswered(plan)
            else:
                # A session that is known to be open is never refused, unless evicted.
                self.refusals += code != 0
                self.session.answered(plan, code)

    @rule()
    def disconnect(self) -> None:
        self.epoch = None
        self.session.reset()

    @invariant()
    def agrees(self) -> None:
        assert self.refusals == 0
        if self.session.is_open:
            assert self.session.acknowledge().epoch == self.epoch
            assert set(self.session.partitions) == self.partitions


SessionLaws.TestCase.settings = settings(max_examples=60)
TestSessionLaws = SessionLaws.TestCase


def test_its_text_says_how_it_stands():
    assert repr(ShareSession()) == "<ShareSession to be opened 0 | 0 partitions>"
    assert repr(opened(A, B)) == "<ShareSession open 1 | 2 partitions>"
