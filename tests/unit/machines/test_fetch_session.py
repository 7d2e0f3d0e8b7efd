from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._machines.fetch_session import FetchPlan, FetchSession, FetchTarget
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

A, B, C = (TopicPartition("t", n) for n in range(3))
ID_1, ID_2 = UUID(int=1), UUID(int=2)


def target(offset: int = 0, topic_id: UUID = ID_1) -> FetchTarget:
    return FetchTarget(offset, 100, 0, topic_id)


def acked(
    session: FetchSession, wanted: dict[TopicPartition, FetchTarget]
) -> FetchPlan:
    plan = session.build(wanted, by_id=True)
    assert session.acked(plan, 7, wanted)
    return plan


def test_the_first_request_is_full_and_asks_for_a_session():
    session = FetchSession()
    plan = session.build({A: target(), B: target()}, by_id=True)
    assert (plan.session_id, plan.epoch, plan.is_full) == (0, 0, True)
    assert list(plan.to_send) == [A, B]
    assert session.epoch == 0  # a question writes nothing
    assert session.partitions == set()


def test_later_requests_say_what_changed():
    session = FetchSession()
    acked(session, {A: target(), B: target()})
    plan = session.build({B: target(), A: target(5), C: target()}, by_id=True)
    assert (plan.session_id, plan.epoch, plan.is_full) == (7, 1, False)
    assert set(plan.to_send) == {A, C}
    assert plan.forgotten == ()
    plan = session.build({A: target()}, by_id=True)
    assert plan.to_send == {}
    assert plan.forgotten == ((B, ID_1),)


def test_the_same_partitions_as_before_are_not_compared():
    class Compared(FetchTarget):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = FetchTarget.__hash__

    session = FetchSession()
    wanted: dict[TopicPartition, FetchTarget] = {A: Compared(0, 100, 0, ID_1)}
    acked(session, wanted)
    for epoch in (1, 2):
        plan = acked(session, wanted)
        assert (plan.epoch, plan.to_send, plan.forgotten) == (epoch, {}, ())
    # Of names instead of ids a new session is made all the same.
    plan = session.build(wanted, by_id=False)
    assert plan.is_full
    assert plan.to_send == wanted


def test_a_topic_made_anew_is_forgotten_and_added():
    session = FetchSession()
    acked(session, {A: target()})
    plan = session.build({A: target(topic_id=ID_2)}, by_id=True)
    assert plan.forgotten == ((A, ID_1),)
    assert plan.to_send == {A: target(topic_id=ID_2)}


def test_names_after_ids_take_a_new_session():
    session = FetchSession()
    acked(session, {A: target()})
    plan = session.build({A: target()}, by_id=False)
    assert (plan.session_id, plan.epoch) == (7, 0)


def test_without_a_session_every_request_is_full():
    session = FetchSession()
    plan = session.build({A: target()}, by_id=True)
    assert session.acked(plan, 0, [A])
    assert session.build({A: target()}, by_id=True).is_full
    assert session.build_close() is None


@pytest.mark.parametrize(
    ("code", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),
    ],
)
def test_an_error_starts_anew(code: int, session_id: int):
    session = FetchSession()
    acked(session, {A: target()})
    session.failed(code)
    plan = session.build({A: target()}, by_id=True)
    assert (plan.session_id, plan.epoch) == (session_id, 0)


def test_a_lost_answer_starts_anew_and_closes_the_old_session():
    session = FetchSession()
    acked(session, {A: target()})
    session.reset()
    plan = session.build({A: target()}, by_id=True)
    assert (plan.session_id, plan.epoch, set(plan.to_send)) == (7, 0, {A})


@pytest.mark.parametrize(("session_id", "answered"), [(7, [C]), (8, [A])])
def test_an_answer_that_does_not_fit_is_not_believed(
    session_id: int, answered: list[TopicPartition]
):
    session = FetchSession()
    acked(session, {A: target()})
    plan = session.build({A: target(3)}, by_id=True)
    assert not session.acked(plan, session_id, answered)
    assert session.epoch == 0


def test_the_epoch_wraps_to_one():
    session = FetchSession()
    plan = FetchPlan(7, 2**31 - 1, {A: target()}, {}, (), True)
    assert session.acked(plan, 7, [])
    assert session.epoch == 1


def test_closing():
    session = FetchSession()
    acked(session, {A: target()})
    plan = session.build_close()
    assert plan is not None
    assert (plan.session_id, plan.epoch, plan.is_full) == (7, -1, True)
    assert "7 epoch 1" in repr(session)


class SessionsAgree(RuleBasedStateMachine):
    """A broker by the book of KIP-227: after any loss it fetches what we want."""

    def __init__(self) -> None:
        super().__init__()
        self.session = FetchSession()
        self.wanted: dict[TopicPartition, FetchTarget] = {}
        self.broker: dict[int, tuple[int, dict[TopicPartition, FetchTarget]]] = {}
        self.last_id = 0
        self.agreed = True

    @rule(
        wanted=st.dictionaries(
            st.sampled_from([A, B, C]),
            st.builds(target, st.integers(0, 3), st.sampled_from([ID_1, ID_2])),
        )
    )
    def want(self, wanted: dict[TopicPartition, FetchTarget]) -> None:
        self.wanted = wanted

    @rule(
        fate=st.sampled_from(["ok", "ok", "ok", "request lost", "answer lost"]),
        by_id=st.sampled_from([True, True, False]),
        grants=st.sampled_from([True, True, False]),
    )
    def fetch(self, fate: str, by_id: bool, grants: bool) -> None:
        plan = self.session.build(self.wanted, by_id=by_id)
        if fate == "request lost":
            self.session.reset()
            return
        code, session_id, served = self.serve(plan, grants)
        if fate == "answer lost":
            self.session.reset()
        elif code:
            self.session.failed(code)
        else:
            assert self.session.acked(plan, session_id, served)
            assert served == self.wanted

    def serve(
        self, plan: FetchPlan, grants: bool
    ) -> tuple[int, int, dict[TopicPartition, FetchTarget]]:
        if plan.is_full:
            self.broker.pop(plan.session_id, None)
            if not grants:
                return 0, 0, dict(plan.to_send)
            self.last_id += 1
            self.broker[self.last_id] = (1, dict(plan.to_send))
            return 0, self.last_id, dict(plan.to_send)
        if plan.session_id not in self.broker:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {}
        epoch, partitions = self.broker[plan.session_id]
        if epoch != plan.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, {}
        for tp, topic_id in plan.forgotten:
            assert partitions[tp].topic_id == topic_id
            del partitions[tp]
        partitions |= plan.to_send
        self.broker[plan.session_id] = (epoch + 1, partitions)
        return 0, plan.session_id, dict(partitions)

    @rule()
    def evict(self) -> None:
        self.broker.clear()

    @invariant()
    def repr_never_fails(self) -> None:
        assert repr(self.session)


TestSessionsAgree = SessionsAgree.TestCase
TestSessionsAgree.settings = settings(max_examples=60)


@given(st.integers(1, 2**31 - 2))
def test_the_epoch_counts(epoch: int):
    session = FetchSession()
    plan = FetchPlan(7, epoch, {}, {}, (), True)
    assert session.acked(plan, 7, [])
    assert session.epoch == epoch + 1


def test_an_id_that_a_full_request_was_refused_for_is_forgotten() -> None:
    session = FetchSession()
    session.session_id, session.epoch = 2**31 - 1, 5
    session.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
    plan = session.build({}, by_id=True)
    assert (plan.session_id, plan.epoch) == (2**31 - 1, 0)  # it closes the old one
    session.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert session.build({}, by_id=True).session_id == 0
