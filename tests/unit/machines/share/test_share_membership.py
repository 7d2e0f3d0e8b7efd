from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import pytest

from kafkaio._machines.share.membership import (
    EndMembership,
    ForgetCoordinator,
    ReportError,
    SendShareHeartbeat,
    SetAssignment,
    ShareEffect,
    ShareMembership,
)
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._machines.share.states import ShareState
from kafkaio.errors import (
    AuthenticationError,
    AuthorizationError,
    ConnectionLost,
    GroupError,
    KafkaError,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

P0, P1 = (TopicIdPartition(UUID(int=7), n) for n in range(2))
NOTHING = frozenset[TopicIdPartition]()
T = frozenset({"t"})


def answer(
    code: int = 0, epoch: int = 1, interval: int = 5000, message: str | None = None
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=code,
        error_message=message,
        member_epoch=epoch,
        heartbeat_interval_ms=interval,
    )


@dataclass
class Member:
    """A membership, and the request it has under way."""

    machine: ShareMembership
    sent: SendShareHeartbeat | None = None
    fetching: frozenset[TopicIdPartition] = NOTHING

    def see(self, effects: Sequence[ShareEffect]) -> list[ShareEffect]:
        for effect in effects:
            if isinstance(effect, SendShareHeartbeat):
                self.sent = effect
            elif isinstance(effect, SetAssignment):
                self.fetching = effect.partitions
        return list(effects)

    def answer(
        self,
        now: float,
        reply: ShareGroupHeartbeatResponse,
        assignment: frozenset[TopicIdPartition] | None = None,
    ) -> list[ShareEffect]:
        assert self.sent is not None
        ticket, self.sent = self.sent.ticket, None
        return self.see(
            self.machine.heartbeat_answered(ticket, reply, assignment, now, 0.5)
        )

    def fail(self, now: float, error: KafkaError) -> list[ShareEffect]:
        assert self.sent is not None
        ticket, self.sent = self.sent.ticket, None
        return self.see(self.machine.request_failed(ticket, error, now, 0.5))

    def tick(self, now: float) -> list[ShareEffect]:
        return self.see(self.machine.tick(now))

    def wait(self) -> float:
        """Tick when that is due; return the time."""
        due = self.machine.next_deadline()
        assert due is not None
        self.tick(due)
        return due


def joining() -> Member:
    member = Member(ShareMembership("g", "me"))
    member.see(member.machine.subscribe(T, 0.0))
    return member


def joined(assignment: frozenset[TopicIdPartition] = frozenset({P0})) -> Member:
    member = joining()
    member.answer(0.1, answer(), assignment)
    return member


def test_joins_with_names_and_epoch_0():
    member = joining()
    assert member.sent == SendShareHeartbeat(1, "me", 0, ("t",), 30.0)
    assert not member.machine.is_joined
    effects = member.answer(0.1, answer(epoch=3), frozenset({P0, P1}))
    assert effects == [SetAssignment(frozenset({P0, P1}))]
    assert member.machine.is_joined
    assert member.machine.may_fetch
    assert member.machine.member_epoch == 3


def test_a_heartbeat_follows_at_the_interval_of_the_broker_from_when_it_was_sent():
    member = joined()
    assert member.machine.next_deadline() == 5.0
    assert member.tick(4.9) == []
    member.tick(5.0)
    assert member.sent == SendShareHeartbeat(2, "me", 1, None, 15.0)
    # One at a time, however late its answer is; but the session ends meanwhile.
    assert member.tick(11.0) == []
    assert member.machine.next_deadline() == 45.0


@pytest.mark.parametrize(("said", "kept"), [(0, 0.01), (-5, 0.01), (2**31 - 1, 15.0)])
def test_the_interval_has_bounds(said: int, kept: float):
    member = joining()
    member.answer(0.0, answer(interval=said), frozenset({P0}))
    assert member.machine.next_deadline() == kept


def test_names_are_sent_when_they_change_and_not_before_the_answer():
    member = joined()
    member.see(member.machine.subscribe(T | {"u"}, 1.0))
    assert member.sent is not None
    assert member.sent.topics == ("t", "u")
    member.see(member.machine.subscribe(frozenset({"u"}), 1.1))
    assert member.sent.topics == ("t", "u")
    member.answer(1.2, answer(epoch=2))
    assert member.sent is not None
    assert member.sent.topics == ("u",)
    assert member.sent.member_epoch == 2


def test_an_assignment_that_is_unchanged_changes_nothing():
    member = joined()
    member.wait()
    assert member.answer(5.1, answer(epoch=2), None) == []
    member.wait()
    assert member.answer(10.1, answer(epoch=2), frozenset({P0})) == []
    assert member.fetching == {P0}


def test_without_an_assignment_each_heartbeat_asks_for_it():
    # An unknown topic, or one whose assignment is computed later.
    member = joined(NOTHING)
    member.wait()
    assert member.sent is not None
    assert member.sent.topics == ("t",)
    member.answer(5.1, answer(), frozenset({P1}))
    assert member.fetching == {P1}
    member.wait()
    assert member.sent is not None
    assert member.sent.topics is None


def test_the_assignment_is_asked_for_once_in_a_minute():
    member = joined()
    asked = []
    for _ in range(25):
        now = member.wait()
        assert member.sent is not None
        if member.sent.topics is not None:
            asked.append(now)
        member.answer(now, answer())
    assert asked == [60.0, 120.0]


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_stops_fetching_and_joins_again_as_the_same(code: E):
    member = joined()
    member.wait()
    effects = member.answer(5.1, answer(code, 0))
    assert effects[0] == SetAssignment(NOTHING)
    assert isinstance(effects[1], SendShareHeartbeat)
    assert effects[1].member_epoch == 0
    assert effects[1].member_id == "me"
    assert effects[1].topics == ("t",)
    assert not member.machine.may_fetch
    # Fenced again and again: with pauses.
    assert member.answer(5.2, answer(code, 0)) == []
    assert member.machine.next_deadline() == pytest.approx(5.3)
    member.wait()
    member.answer(5.4, answer(epoch=9), frozenset({P1}))
    assert member.fetching == {P1}


def test_a_group_that_was_deleted_is_joined_again():
    member = joined()
    member.wait()
    member.answer(5.1, answer(E.GROUP_ID_NOT_FOUND, 0))
    assert member.machine.state is ShareState.JOINING
    assert member.sent is not None
    assert member.sent.member_epoch == 0


@pytest.mark.parametrize(
    ("code", "forgets"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, False),
        (E.COORDINATOR_NOT_AVAILABLE, True),
        (E.NOT_COORDINATOR, True),
    ],
)
def test_a_passing_reason_is_retried_with_pauses(code: E, forgets: bool):
    member = joined()
    now = member.wait()
    pauses = []
    for _ in range(8):
        effects = member.answer(now, answer(code))
        assert effects == [ForgetCoordinator()] * forgets
        before, now = now, member.wait()
        pauses.append(now - before)
        assert member.sent is not None
        # Whether the last one counted is unknown.
        assert member.sent.topics == ("t",)
        assert member.sent.member_epoch == 1
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1])
    assert member.fetching == {P0}


def test_no_answer_looks_the_coordinator_up():
    member = joined()
    now = member.wait()
    assert member.fail(now, ConnectionLost("gone")) == [ForgetCoordinator()]
    assert member.wait() == pytest.approx(now + 0.1)
    assert member.sent is not None
    assert member.sent.topics == ("t",)


def test_a_member_whose_session_has_ended_stops_fetching_till_it_is_accepted():
    member = joined()
    now = member.wait()
    while now < 45.0:
        assert member.fetching == {P0}
        member.fail(now, broker_error(E.COORDINATOR_NOT_AVAILABLE, "down"))
        now = member.wait()
    assert now == 45.0
    assert member.fetching == NOTHING
    assert member.machine.is_joined
    assert not member.machine.may_fetch
    if member.sent is None:
        member.wait()
    # The session of the group was longer.
    assert member.sent is not None
    assert member.sent.member_epoch == 1
    member.answer(46.0, answer(epoch=1))
    assert member.fetching == {P0}


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (E.INVALID_REQUEST, KafkaError, "share group 'g'"),
        (E.GROUP_ID_NOT_FOUND, GroupError, "it is not a share group"),
        (E.INCONSISTENT_GROUP_PROTOCOL, GroupError, "it is not a share group"),
        (E.INVALID_GROUP_ID, GroupError, "share group 'g'"),
        (E.GROUP_AUTHORIZATION_FAILED, AuthorizationError, "share group 'g'"),
        (E.UNSUPPORTED_VERSION, KafkaError, "share group 'g'"),
        (E.GROUP_MAX_SIZE_REACHED, GroupError, "share group 'g'"),
    ],
)
def test_a_join_that_is_refused_ends_it(code: E, kind: type[KafkaError], words: str):
    member = joining()
    (effect,) = member.answer(0.1, answer(code, 0, message="because"))
    assert isinstance(effect, EndMembership)
    assert isinstance(effect.error, kind)
    assert words in str(effect.error)
    assert "because" in str(effect.error)
    assert member.machine.has_ended
    assert member.machine.next_deadline() is None
    assert member.machine.subscribe(T | {"u"}, 1.0) == ()
    assert member.machine.close(1.0) == ()


@pytest.mark.parametrize(
    "error", [UnsupportedVersion("no"), AuthenticationError("wrong password")]
)
def test_a_join_that_cannot_be_sent_ends_it(error: KafkaError):
    member = joining()
    assert member.fail(0.1, error) == [EndMembership(error)]


def test_one_that_was_accepted_believes_a_refusal_after_some_seconds():
    member = joined()
    now = member.wait()
    effects: list[ShareEffect] = []
    began = now
    while not member.machine.has_ended:
        effects += member.answer(now, answer(E.INVALID_REQUEST, 0))
        if not member.machine.has_ended:
            now = member.wait()
    assert now - began >= 10
    assert sum(isinstance(effect, ReportError) for effect in effects) == 1
    assert SetAssignment(NOTHING) in effects
    assert isinstance(effects[-1], EndMembership)
    # It leaves, for the group may have it all the same.
    assert member.sent is not None
    assert member.sent.member_epoch == -1


def test_a_right_that_is_missing_is_reported_once_and_waited_for():
    member = joined()
    now = member.wait()
    reports = []
    for _ in range(40):
        effects = member.answer(now, answer(E.GROUP_AUTHORIZATION_FAILED, 0))
        reports += [each for each in effects if isinstance(each, ReportError)]
        now = member.wait()
        if member.sent is None:
            now = member.wait()
    assert len(reports) == 1
    assert not member.machine.has_ended
    member.answer(now, answer(epoch=4), frozenset({P0}))
    assert member.machine.may_fetch


def test_leaves_and_ends():
    member = joined()
    effects = member.see(member.machine.close(1.0))
    assert [type(effect) for effect in effects] == [SetAssignment, SendShareHeartbeat]
    assert member.fetching == NOTHING
    assert member.sent is not None
    assert (member.sent.member_epoch, member.sent.topics) == (-1, None)
    assert not member.machine.has_ended
    member.answer(1.1, answer(epoch=-1))
    assert member.machine.has_ended
    assert member.machine.state is ShareState.LEFT


def test_a_leave_that_fails_ends_it_too():
    member = joined()
    member.see(member.machine.close(1.0))
    member.fail(2.0, ConnectionLost("gone"))
    assert member.machine.has_ended


def test_one_that_never_joined_has_nothing_to_leave():
    machine = ShareMembership("g", "me")
    assert list(machine.close(0.0)) == []
    assert machine.has_ended


def test_a_join_without_an_answer_is_left():
    member = joining()
    member.see(member.machine.close(0.1))
    assert member.sent is not None
    assert member.sent.member_epoch == -1


def test_without_topics_it_leaves_and_stays_ready():
    member = joined()
    member.see(member.machine.subscribe(frozenset(), 1.0))
    assert member.fetching == NOTHING
    assert member.sent is not None
    assert member.sent.member_epoch == -1
    # Wanted again before the leave is answered: joins afterwards.
    assert member.machine.subscribe(T, 1.1) == ()
    member.answer(1.2, answer(epoch=-1))
    assert member.sent is not None
    assert (member.sent.member_epoch, member.sent.topics) == (0, ("t",))
    member.answer(1.3, answer(), frozenset({P0}))
    assert member.fetching == {P0}


def test_closed_while_unsubscribing_waits_for_the_same_leave():
    member = joined()
    member.see(member.machine.subscribe(frozenset(), 1.0))
    assert list(member.machine.close(1.1)) == []
    member.answer(1.2, answer(epoch=-1))
    assert member.machine.has_ended


def test_a_late_answer_changes_nothing():
    member = joined()
    member.wait()
    assert member.sent is not None
    ticket = member.sent.ticket
    member.fail(6.0, broker_error(E.REQUEST_TIMED_OUT, "late"))
    late = member.machine.heartbeat_answered(
        ticket, answer(epoch=77), NOTHING, 6.1, 0.5
    )
    assert late == ()
    assert member.machine.member_epoch == 1
    assert member.fetching == {P0}
    assert member.machine.request_failed(ticket, ConnectionLost("x"), 6.2, 0.5) == ()
    assert member.machine.heartbeat_answered(0, answer(), None, 6.3, 0.5) == ()


@pytest.mark.parametrize("epoch", [0, -1, -2])
def test_an_impossible_epoch_is_no_answer(epoch: int):
    member = joining()
    assert member.answer(0.1, answer(epoch=epoch), frozenset({P0})) == []
    assert not member.machine.is_joined
    assert member.machine.next_deadline() == pytest.approx(0.2)


def test_its_text_says_how_it_stands():
    text = repr(joined().machine)
    assert text == "<ShareMembership 'g' STABLE epoch=1 | 1 assigned>"


def test_a_group_name_that_no_look_up_accepts_ends_one_that_was_accepted_too():
    member = joined()
    now = member.wait()
    error = broker_error(E.INVALID_GROUP_ID, "no such name")
    while not member.machine.has_ended:
        member.fail(now, error)
        if not member.machine.has_ended:
            now = member.wait()
    assert now >= 15


def test_a_missing_right_to_look_the_coordinator_up_is_waited_for():
    member = joined()
    now = member.wait()
    error = broker_error(E.GROUP_AUTHORIZATION_FAILED, "not allowed")
    effects = member.fail(now, error)
    assert ReportError(error) in effects
    assert member.machine.next_deadline() == pytest.approx(now + 0.1)
