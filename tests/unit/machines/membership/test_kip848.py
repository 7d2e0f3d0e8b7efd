"""The machine of a KIP-848 group member, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

import pytest

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.kip848.membership import (
    Kip848MemberConfig,
    Kip848Membership,
)
from kafkaio._machines.membership.kip848.states import Kip848State
from kafkaio.errors import (
    AuthenticationError,
    ConnectionLost,
    Fenced,
    GroupError,
    KafkaError,
    UnsupportedVersion,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.types import TopicPartition

E = ErrorCode
EffectT = TypeVar("EffectT", bound=fx.Effect)
IDS = {name: UUID(int=number) for number, name in enumerate("tuv", 1)}
NAMES = {topic_id: name for name, topic_id in IDS.items()}
T = frozenset({"t"})


def tps(*numbers: int, topic: str = "t") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, n) for n in numbers)


def slots(*numbers: int, topic: str = "t") -> frozenset[tuple[UUID, int]]:
    return frozenset((IDS[topic], n) for n in numbers)


class Driver:
    """A machine with its clock, and what it asked for."""

    def __init__(self, **options: Any) -> None:
        options = {"rebalance": 60.0, "group_id": "g", "member_id": "me", **options}
        self.machine = Kip848Membership(Kip848MemberConfig(**options))
        self.now = 100.0
        self.out: list[fx.Effect] = []
        self.epoch = 0

    @property
    def state(self) -> Kip848State:
        return self.machine.state

    def feed(self, effects: Iterable[fx.Effect]) -> list[fx.Effect]:
        self.out = list(effects)
        return self.out

    def one(self, kind: type[EffectT]) -> EffectT:
        (found,) = (effect for effect in self.out if isinstance(effect, kind))
        return found

    def kinds(self) -> list[str]:
        return [type(effect).__name__ for effect in self.out]

    @property
    def beat(self) -> fx.SendConsumerGroupHeartbeat:
        return self.one(fx.SendConsumerGroupHeartbeat)

    def subscribe(self, topics: frozenset[str] = T) -> list[fx.Effect]:
        return self.feed(self.machine.subscribe(topics, self.now))

    def wait(self, seconds: float) -> list[fx.Effect]:
        self.now += seconds
        return self.feed(self.machine.tick(self.now))

    def answer(
        self, assigned: Iterable[tuple[UUID, int]] | None = None, **options: Any
    ) -> list[fx.Effect]:
        """The heartbeat is answered; with the next epoch where it is a join."""
        ticket = options.pop("ticket", None) or self.beat.ticket
        reply = ConsumerGroupHeartbeatResponse(
            member_id="me", member_epoch=self.epoch, heartbeat_interval_ms=5000
        )
        if assigned is not None:
            reply.assignment = Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=topic_id, partitions=[number]
                    )
                    for topic_id, number in assigned
                ]
            )
        for name, value in options.items():
            setattr(reply, name, value)
        return self.feed(self.machine.heartbeat_answered(ticket, reply, self.now, 0.5))

    def refused(self, code: int, **options: Any) -> list[fx.Effect]:
        return self.answer(error_code=code, **options)

    def failed(self, error: KafkaError | None = None) -> list[fx.Effect]:
        why = error or ConnectionLost("gone")
        return self.feed(
            self.machine.request_failed(self.beat.ticket, why, self.now, 0.5)
        )

    def named(self, names: dict[UUID, str] | None = None) -> list[fx.Effect]:
        found = NAMES if names is None else names
        return self.feed(self.machine.topics_named(found, self.now, 0.5))

    def idle(self) -> list[fx.Effect]:
        pending = self.machine.ledger.pending
        return self.feed(self.machine.release(pending, self.now))

    def revoked(self, *, in_time: bool = True) -> list[fx.Effect]:
        claims = self.one(fx.Revoke).claims
        return self.feed(self.machine.revoke_ended(claims, self.now, in_time=in_time))


def joined(*numbers: int, **options: Any) -> Driver:
    """A member that holds these, acknowledged."""
    driver = Driver(**options)
    driver.subscribe()
    driver.epoch = 1
    driver.answer(slots(*numbers))
    if numbers:
        driver.named()
        assert driver.one(fx.Assign).added == tps(*numbers)
        assert driver.beat.owned == slots(*numbers)
        driver.answer()
    assert driver.state is Kip848State.STABLE
    return driver


def test_refused_credentials_are_told_and_tried_again() -> None:
    driver = Driver()
    driver.subscribe()
    refusal = AuthenticationError("wrong password")
    driver.failed(refusal)
    assert driver.one(fx.ReportError).error is refusal
    assert "SendConsumerGroupHeartbeat" not in driver.kinds()
    due = driver.machine.next_deadline()
    assert due is not None
    assert due > driver.now
    driver.wait(due - driver.now)
    assert driver.beat.ticket


def test_a_join_says_everything() -> None:
    driver = Driver(rack="r", assignor="range", group_instance_id="i")
    driver.subscribe(frozenset("tu"))
    assert driver.state is Kip848State.JOINING
    beat = driver.beat
    assert (beat.member_epoch, beat.member_id, beat.is_new) == (0, "me", True)
    assert (beat.rack, beat.assignor, beat.rebalance) == ("r", "range", 60.0)
    assert (beat.names, beat.regex, beat.owned) == (set("tu"), None, frozenset())
    assert "JOINING epoch=0 | 0 owned" in repr(driver.machine)
    assert driver.machine.generation == -1
    assert driver.machine.next_deadline() is None  # the shell bounds the request
    assert driver.machine.awaits(beat.ticket)


def test_an_assignment_is_taken_on_and_acknowledged() -> None:
    driver = Driver()
    driver.subscribe()
    driver.epoch = 3
    assert driver.answer(slots(0, 1)) == [fx.NameTopics(frozenset({IDS["t"]}))]
    assert driver.state is Kip848State.RECONCILING
    driver.named()
    assert driver.kinds() == ["Assign", "SendConsumerGroupHeartbeat"]
    assert driver.state is Kip848State.ACKNOWLEDGING
    beat = driver.beat
    assert (beat.member_epoch, beat.owned) == (3, slots(0, 1))
    assert (beat.names, beat.rebalance) == (None, None)
    assert driver.answer() == []
    assert driver.state is Kip848State.STABLE
    assert driver.machine.generation == 3


def test_a_plain_heartbeat_says_nothing() -> None:
    driver = joined(0)
    driver.wait(5)
    driver.answer()  # the one that asks for the whole assignment
    assert driver.wait(4.9) == []
    assert driver.machine.next_deadline() == pytest.approx(driver.now + 0.1)
    driver.wait(0.1)
    beat = driver.beat
    assert (beat.member_epoch, beat.owned, beat.names, beat.regex) == (
        1,
        None,
        None,
        None,
    )
    assert beat.timeout == 15
    assert driver.wait(20) == []  # one at a time


def test_what_is_revoked_is_released_before_it_is_acknowledged() -> None:
    driver = joined(0, 1, 2)
    driver.wait(5)
    driver.answer(slots(2))
    asked = driver.one(fx.RequestRevoke)
    assert (asked.partitions, asked.deadline) == (tps(0, 1), driver.now + 50)
    assert driver.state is Kip848State.RECONCILING
    # Delaying is not acknowledging: heartbeats go on and say nothing.
    driver.wait(5)
    assert driver.beat.owned is None
    driver.answer()
    driver.idle()
    assert driver.one(fx.Revoke).partitions == tps(0, 1)
    driver.revoked()
    assert driver.beat.owned == slots(2)
    assert driver.state is Kip848State.ACKNOWLEDGING
    driver.epoch = 2
    assert driver.answer() == []
    assert driver.state is Kip848State.STABLE
    assert driver.machine.generation == 2


def test_one_that_lasts_holds_up_the_acknowledgement_of_its_siblings() -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.answer(())
    driver.feed(driver.machine.release(tps(0), driver.now))
    assert driver.revoked() == []
    driver.wait(5)
    assert driver.beat.owned is None
    driver.answer()
    driver.idle()
    driver.revoked()
    assert driver.beat.owned == frozenset()


def test_only_what_is_late_is_lost_and_the_rest_is_acknowledged() -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.answer(slots(1))
    deadline = driver.machine.ledger.next_deadline()
    assert deadline is not None
    while driver.machine.next_deadline() != deadline:
        driver.wait((driver.machine.next_deadline() or 0) - driver.now)
        driver.answer()
    driver.wait(deadline - driver.now)
    assert driver.one(fx.Lose).partitions == tps(0)
    assert driver.beat.owned == slots(1)


def test_a_revoke_that_ran_out_of_time_is_a_loss() -> None:
    driver = joined(0)
    driver.wait(5)
    driver.answer(())
    driver.idle()
    driver.revoked(in_time=False)
    assert driver.one(fx.Lose).partitions == tps(0)
    assert driver.beat.owned == frozenset()


def test_a_partition_that_comes_back_waits_until_it_was_acknowledged_as_gone() -> None:
    driver = joined(0)
    number = driver.machine.ledger.numbers[TopicPartition("t", 0)]
    driver.wait(5)
    driver.answer(())
    driver.wait(5)
    driver.answer(slots(0))
    driver.idle()
    driver.revoked()
    assert driver.beat.owned == frozenset()
    driver.answer()
    assert driver.one(fx.Assign).added == tps(0)
    assert driver.machine.ledger.numbers[TopicPartition("t", 0)] > number
    assert driver.beat.owned == slots(0)


def test_the_same_assignment_again_is_no_news() -> None:
    driver = joined(0)
    driver.wait(5)
    assert driver.answer(slots(0)) == []
    assert driver.state is Kip848State.STABLE


def test_topics_without_a_name_wait_and_the_others_go_on() -> None:
    driver = Driver()
    driver.subscribe(frozenset("tu"))
    driver.epoch = 1
    driver.answer(slots(0) | slots(0, topic="u"))
    assert driver.one(fx.NameTopics).topic_ids == {IDS["t"], IDS["u"]}
    driver.named({IDS["t"]: "t"})
    assert driver.one(fx.Assign).added == tps(0)
    assert driver.beat.owned == slots(0)
    driver.answer()
    assert driver.state is Kip848State.RECONCILING
    assert driver.machine.next_deadline() == pytest.approx(driver.now + 0.1)
    driver.wait(0.1)
    assert driver.one(fx.NameTopics).topic_ids == {IDS["u"]}
    driver.named()
    assert driver.one(fx.Assign).added == tps(0, topic="u")
    assert driver.beat.owned == slots(0) | slots(0, topic="u")
    driver.answer()
    assert driver.state is Kip848State.STABLE


def test_a_topic_made_anew_is_another() -> None:
    driver = joined(0)
    driver.wait(5)
    new = UUID(int=99)
    driver.answer({(new, 0)})
    driver.named({new: "t"})
    assert "Assign" not in driver.kinds()
    driver.idle()
    driver.revoked()
    assert driver.one(fx.Assign).added == tps(0)
    assert driver.beat.owned == {(new, 0)}


def test_start_waits_for_partitions_a_while_and_asks_more_often() -> None:
    driver = joined()
    driver.wait(1)
    driver.answer()
    driver.wait(1)
    driver.answer(slots(0))
    driver.named()
    assert driver.one(fx.Assign).added == tps(0)


def beats_of(driver: Driver, seconds: float) -> list[float]:
    """Answer all heartbeats of a time; return when each was sent."""
    end, sent = driver.now + seconds, list[float]()
    while (due := driver.machine.next_deadline()) is not None and due <= end:
        driver.wait(max(0.0, due - driver.now))
        if "SendConsumerGroupHeartbeat" in driver.kinds():
            sent.append(driver.now)
            driver.answer()
    driver.now = end
    return sent


def test_a_member_asks_often_until_all_others_have_had_a_heartbeat() -> None:
    driver = joined()
    begun = driver.now
    assert len(beats_of(driver, 1.9)) == 5
    driver.wait(0.1)
    # One of the others has released a partition, and more may follow.
    driver.answer(slots(0))
    driver.named()
    assert driver.one(fx.Assign).added == tps(0)
    driver.answer()
    sent = beats_of(driver, 30)
    assert [at for at in sent if at < begun + 5.9] == pytest.approx(
        [begun + 2 + count / 3 for count in range(1, 12)]
    )
    # Then it has the pace of all others.
    later = [at for at in sent if at >= begun + 6.1]
    assert {round(b - a, 3) for a, b in itertools.pairwise(later)} == {5.0}


@pytest.mark.parametrize(
    ("interval", "most"), [(5000, 31), (500, 31), (100, 31), (30, 101), (45000, 31)]
)
def test_a_member_without_partitions_asks_a_bounded_number_of_times(
    interval: int, most: int
) -> None:
    driver = Driver()
    driver.subscribe()
    driver.epoch = 1
    driver.answer(heartbeat_interval_ms=interval)
    count, is_settled = 1, False
    while not is_settled:
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(max(0.0, due - driver.now))
        is_settled = "Assign" in driver.kinds()
        if "SendConsumerGroupHeartbeat" in driver.kinds():
            count += 1
            driver.answer(heartbeat_interval_ms=interval)
    assert count <= most


def test_who_gets_partitions_at_once_has_the_usual_pace() -> None:
    driver = joined(0, 1)
    assert driver.machine.next_deadline() == driver.now + 5


def test_a_member_that_gets_nothing_is_settled_in_the_end() -> None:
    driver = joined()
    for _ in range(9):
        driver.wait(1)
        driver.answer()
    driver.wait(1)
    assert driver.one(fx.Assign) == fx.Assign(frozenset(), frozenset())
    driver.answer()
    assert driver.machine.next_deadline() == driver.now + 5


def test_nobody_has_to_poll_before_there_is_an_assignment() -> None:
    driver = joined(rebalance=6.0)
    for _ in range(9):
        driver.wait(1)
        driver.answer()
    assert driver.state is Kip848State.STABLE
    driver.wait(1)
    assert driver.one(fx.Assign).added == frozenset()
    driver.answer()
    driver.wait(5)
    driver.answer()
    driver.wait(1)
    assert driver.state is Kip848State.STALLED


def test_a_changed_subscription_is_sent_at_once() -> None:
    driver = joined(0)
    driver.subscribe(frozenset("u"))
    assert (driver.beat.names, driver.beat.rebalance) == ({"u"}, None)
    assert driver.one(fx.RequestRevoke).partitions == tps(0)
    assert driver.machine.subscribe(frozenset("u"), driver.now) == ()
    driver.answer(slots(0) | slots(1))
    driver.idle()
    driver.revoked()
    # What is not wanted any more is not taken, though the group still offers it.
    assert "Assign" not in driver.kinds()
    assert driver.beat.owned == frozenset()


def test_a_change_while_a_heartbeat_is_out_follows_it() -> None:
    driver = joined(0)
    driver.wait(5)
    ticket = driver.beat.ticket
    assert driver.subscribe(frozenset("tu")) == []
    driver.answer(ticket=ticket)
    assert driver.beat.names == set("tu")


def test_a_regular_expression_and_back_to_names() -> None:
    driver = Driver()
    driver.feed(driver.machine.subscribe_regex("t.*", driver.now))
    assert (driver.beat.names, driver.beat.regex) == (frozenset(), "t.*")
    assert driver.machine.regex == "t.*"
    driver.epoch = 1
    driver.answer(slots(0))
    driver.named()
    assert driver.one(fx.Assign).added == tps(0)
    ticket = driver.beat.ticket
    driver.subscribe()
    driver.answer(ticket=ticket)
    assert (driver.beat.names, driver.beat.regex) == (T, "")
    driver.answer()
    assert driver.machine.regex is None


def test_a_broker_that_knows_no_regular_expressions() -> None:
    driver = Driver()
    driver.feed(driver.machine.subscribe_regex("t.*", driver.now))
    ticket = driver.beat.ticket
    assert driver.feed(driver.machine.regex_refused(ticket)) == [fx.MatchTopics()]
    assert driver.machine.regex_refused(ticket) == ()
    driver.subscribe()
    assert (driver.beat.member_epoch, driver.beat.names) == (0, T)


def test_a_broker_that_refuses_the_regular_expression() -> None:
    driver = Driver()
    driver.feed(driver.machine.subscribe_regex("t(", driver.now))
    assert driver.refused(E.INVALID_REGULAR_EXPRESSION) == [fx.MatchTopics()]
    assert driver.machine.topics == frozenset()
    assert driver.wait(1) == []
    driver.subscribe(T)
    assert (driver.beat.member_epoch, driver.beat.names) == (0, T)


def test_the_old_subscription_stands_until_the_names_have_come() -> None:
    driver = joined(0)
    driver.feed(driver.machine.subscribe_regex("t(", driver.now))
    driver.refused(E.INVALID_REGULAR_EXPRESSION)
    assert driver.kinds() == ["MatchTopics", "SendConsumerGroupHeartbeat"]
    assert (driver.beat.names, driver.beat.owned) == (T, slots(0))
    driver.answer(slots(0))
    assert driver.state is Kip848State.STABLE
    driver.subscribe(frozenset("tu"))
    assert driver.beat.names == set("tu")


def test_who_wants_nothing_waits_for_nothing() -> None:
    driver = Driver()
    driver.subscribe(frozenset())
    assert driver.out == [fx.Assign(frozenset(), frozenset())]
    assert driver.machine.next_deadline() is None
    driver.subscribe()
    assert driver.beat.names == T


def test_a_bad_expression_without_one_is_the_end() -> None:
    driver = Driver()
    driver.subscribe()
    driver.refused(E.INVALID_REGULAR_EXPRESSION)
    assert driver.state is Kip848State.FATAL


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_again_under_its_id(code: E) -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.refused(code)
    assert driver.kinds() == ["Lose", "SendConsumerGroupHeartbeat"]
    assert driver.one(fx.Lose).partitions == tps(0, 1)
    assert (driver.beat.member_epoch, driver.beat.member_id) == (0, "me")
    assert driver.beat.owned == frozenset()
    assert not driver.beat.is_new
    # One that is fenced again at once must not hammer.
    assert driver.refused(code) == []
    assert driver.machine.next_deadline() == pytest.approx(driver.now + 0.1)
    driver.wait(0.1)
    assert driver.beat.member_epoch == 0


def test_a_group_that_vanished_is_joined_again() -> None:
    driver = joined(0)
    driver.wait(5)
    driver.refused(E.GROUP_ID_NOT_FOUND)
    assert driver.kinds() == ["Lose", "SendConsumerGroupHeartbeat"]
    # It was let in once, so it doubts that.
    driver.refused(E.GROUP_ID_NOT_FOUND)
    assert driver.kinds() == ["ReportError"]
    still_refused(driver, E.GROUP_ID_NOT_FOUND)
    assert isinstance(driver.one(fx.Fail).error, GroupError)


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_the_coordinator_is_elsewhere(code: E) -> None:
    driver = joined(0)
    driver.wait(5)
    assert driver.refused(code) == [fx.ForgetCoordinator()]
    driver.wait(0.1)
    # Whatever went wrong, the next heartbeat says everything.
    beat = driver.beat
    assert (beat.member_epoch, beat.names, beat.owned) == (1, T, slots(0))
    assert (beat.rebalance, beat.rack) == (60.0, None)


def test_a_coordinator_that_loads() -> None:
    driver = joined(0)
    driver.wait(5)
    assert driver.refused(E.COORDINATOR_LOAD_IN_PROGRESS) == []
    driver.wait(0.1)
    assert driver.beat.owned == slots(0)


def test_a_full_heartbeat_acknowledges_nothing_that_is_still_held() -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.answer(slots(1))
    driver.wait(5)
    assert driver.failed() == [fx.ForgetCoordinator()]
    driver.wait(0.1)
    assert driver.beat.owned == slots(0, 1)
    driver.answer(slots(1))
    driver.idle()
    driver.revoked()
    assert driver.beat.owned == slots(1)


def test_failures_back_off() -> None:
    driver = Driver()
    driver.subscribe()
    for delay in (0.1, 0.2, 0.4):
        assert driver.failed() == [fx.ForgetCoordinator()]
        assert driver.wait(delay - 0.01) == []
        driver.wait(0.01)
        assert driver.beat.member_epoch == 0


FATAL = [
    (E.UNRELEASED_INSTANCE_ID, GroupError),
    (E.UNSUPPORTED_ASSIGNOR, GroupError),
    (E.INVALID_REQUEST, KafkaError),
    (E.FENCED_INSTANCE_ID, Fenced),
    (E.UNSUPPORTED_VERSION, KafkaError),
    (E.GROUP_ID_NOT_FOUND, GroupError),
    (E.INCONSISTENT_GROUP_PROTOCOL, GroupError),
    (E.INVALID_GROUP_ID, GroupError),
    (E.INVALID_REGULAR_EXPRESSION, GroupError),
]
#: What somebody else may change, or nobody knows.
DENIALS = [
    E.GROUP_AUTHORIZATION_FAILED,
    E.TOPIC_AUTHORIZATION_FAILED,
    E.GROUP_MAX_SIZE_REACHED,
    E.UNKNOWN_SERVER_ERROR,
    12345,
]
denials = pytest.mark.parametrize("code", DENIALS)


@denials
def test_a_denied_join_is_told_and_tried_again(code: int) -> None:
    driver = Driver()
    driver.subscribe()
    for delay in (0.1, 0.2, 0.4):
        driver.refused(code)
        assert driver.kinds() == ["ReportError"]
        assert driver.machine.next_deadline() == pytest.approx(driver.now + delay)
        driver.wait(delay)
    driver.epoch = 1
    driver.answer(slots(0))
    driver.named()
    assert driver.one(fx.Assign).added == tps(0)


@denials
def test_denied_heartbeats_keep_all_within_a_session(code: int) -> None:
    driver = joined(0, 1)
    driver.wait(5)
    began = driver.now
    while driver.now < began + 39:
        driver.refused(code)
        assert driver.kinds() == ["ReportError"]
        assert driver.machine.ledger.owned == tps(0, 1)
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(due - driver.now)
    driver.answer(slots(0, 1))
    driver.wait(5)
    assert driver.beat.member_epoch == 1
    assert driver.machine.ledger.owned == tps(0, 1)
    # It counts anew from the next refusal.
    driver.machine.polled(driver.now)
    driver.refused(code)
    driver.wait(39)
    assert driver.machine.ledger.owned == tps(0, 1)


@denials
def test_who_is_denied_for_a_session_has_been_removed(code: int) -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.refused(code)
    began = driver.now
    seen = list[fx.Effect]()
    while driver.machine.ledger.owned:
        due = driver.machine.next_deadline()
        assert due is not None
        seen += driver.wait(due - driver.now)
        if "SendConsumerGroupHeartbeat" in driver.kinds() and driver.beat.member_epoch:
            driver.refused(code)
    assert driver.now == pytest.approx(began + 40)
    assert [e.partitions for e in seen if isinstance(e, fx.Lose)] == [tps(0, 1)]
    assert driver.state is Kip848State.JOINING
    driver.wait(1)
    assert (driver.beat.member_epoch, driver.beat.member_id) == (0, "me")
    driver.epoch = 3
    driver.answer(slots(0))
    assert driver.one(fx.Assign).added == tps(0)


def still_refused(driver: Driver, code: int) -> None:
    """The member repeats what is refused, for ten seconds."""
    began = driver.now
    while driver.state is not Kip848State.FATAL:
        assert driver.now < began + 12
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(max(0.0, due - driver.now))
        driver.machine.polled(driver.now)
        if "SendConsumerGroupHeartbeat" in driver.kinds():
            driver.refused(code)


@pytest.mark.parametrize(("code", "kind"), FATAL)
def test_a_member_doubts_one_answer_that_would_end_it(
    code: E, kind: type[KafkaError]
) -> None:
    del kind
    driver = joined(0, 1)
    for _ in range(5):
        driver.wait(5)
        driver.refused(code)
        if code == E.GROUP_ID_NOT_FOUND:
            return  # joining again creates it
        assert driver.kinds() == ["ReportError"]
        assert "another one" not in str(driver.one(fx.ReportError).error)
        driver.wait(1)
        driver.answer(slots(0, 1))  # which ends the doubt
        driver.machine.polled(driver.now)
        assert driver.machine.ledger.owned == tps(0, 1)


@pytest.mark.parametrize("code", [E.FENCED_INSTANCE_ID, E.UNRELEASED_INSTANCE_ID])
def test_nobody_takes_the_place_of_who_has_no_instance_id(code: E) -> None:
    driver = Driver()
    driver.subscribe()
    for _ in range(20):
        driver.refused(code)
        assert driver.kinds() == ["ReportError"]
        driver.wait(1)


@pytest.mark.parametrize("code", [int(code) for code in E])
def test_every_code_has_an_answer(code: int) -> None:
    final = {code for code, _ in FATAL}
    static = {"group_instance_id": "i"}
    for driver in (Driver(**static), joined(0, **static)):
        is_member = driver.state is Kip848State.STABLE
        if is_member:
            driver.wait(5)
        else:
            driver.subscribe()
        driver.refused(code)
        # Joining again creates a group that is gone.
        is_lost = is_member and code == E.GROUP_ID_NOT_FOUND
        if is_member and code in final and not is_lost:
            still_refused(driver, code)
        is_over = driver.state is Kip848State.FATAL
        assert is_over == (code in final and not is_lost)
        assert ("Fail" in driver.kinds()) == is_over
        if is_over:
            # One that was replaced has no place to give up.
            leaves = is_member and code != E.FENCED_INSTANCE_ID
            assert driver.kinds() == [
                *(["SendConsumerGroupHeartbeat"] if leaves else []),
                *(["Lose"] if is_member else []),
                "Fail",
            ]
        else:
            assert driver.machine.next_deadline() is not None or driver.out


@pytest.mark.parametrize(("code", "kind"), FATAL)
def test_what_ends_a_membership(code: E, kind: type[KafkaError]) -> None:
    driver = Driver(group_instance_id="i")
    driver.subscribe()
    driver.refused(code, error_message="so there")
    error = driver.one(fx.Fail).error
    assert isinstance(error, kind)
    assert "so there" in str(error)
    assert driver.machine.has_ended
    assert driver.machine.next_deadline() is None
    assert driver.subscribe() == []


@pytest.mark.parametrize(
    "code",
    [E.UNSUPPORTED_VERSION, E.GROUP_ID_NOT_FOUND, E.INCONSISTENT_GROUP_PROTOCOL],
)
def test_the_classic_protocol_may_do(code: E) -> None:
    driver = Driver(falls_back=True)
    driver.subscribe()
    driver.refused(code)
    assert 'group_protocol="classic"' in str(driver.one(fx.FallBack).error)


def test_a_broker_without_the_protocol() -> None:
    driver = Driver(falls_back=True)
    driver.subscribe()
    driver.failed(UnsupportedVersion("too old"))
    assert driver.kinds() == ["FallBack"]


def test_who_was_a_member_does_not_fall_back() -> None:
    driver = joined(0, falls_back=True)
    driver.wait(5)
    driver.refused(E.UNSUPPORTED_VERSION)
    still_refused(driver, E.UNSUPPORTED_VERSION)
    assert driver.beat.is_leave
    assert driver.kinds() == ["SendConsumerGroupHeartbeat", "Lose", "Fail"]


def test_who_does_not_poll_leaves_and_joins_at_the_next_poll() -> None:
    driver = joined(0)
    driver.wait(5)
    for _ in range(11):
        driver.answer()
        driver.wait(5)
    assert driver.kinds() == ["SendConsumerGroupHeartbeat", "Lose"]
    assert driver.beat.member_epoch == -1
    assert driver.state is Kip848State.STALLED
    assert driver.machine.next_deadline() is None
    driver.feed(driver.machine.polled(driver.now))
    assert (driver.beat.member_epoch, driver.beat.names) == (0, T)
    assert driver.machine.polled(driver.now) == ()


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_closing_gives_everything_up_and_leaves(
    instance: str | None, epoch: int
) -> None:
    driver = joined(0, group_instance_id=instance)
    driver.feed(driver.machine.close(driver.now))
    assert driver.one(fx.RequestRevoke).partitions == tps(0)
    assert driver.state is Kip848State.LEAVING
    driver.idle()
    driver.revoked()
    assert driver.beat.member_epoch == epoch
    leave = driver.beat.ticket
    assert driver.machine.leave_ended(leave + 1, driver.now) == ()
    driver.feed(driver.machine.leave_ended(leave, driver.now))
    assert driver.state is Kip848State.LEFT
    assert driver.machine.close(driver.now) == ()
    assert driver.machine.unsubscribe(driver.now) == ()


def test_a_leave_that_fails_is_a_leave() -> None:
    driver = joined()
    driver.feed(driver.machine.close(driver.now))
    driver.failed()
    assert driver.state is Kip848State.LEFT


def test_who_never_joined_has_nothing_to_leave() -> None:
    driver = Driver()
    driver.feed(driver.machine.close(driver.now))
    assert driver.out == []
    assert driver.state is Kip848State.LEFT
    other = joined(0)
    other.wait(5)
    other.feed(other.machine.close(other.now))
    other.machine.heartbeat_answered(
        2, ConsumerGroupHeartbeatResponse(error_code=E.NONE), other.now, 0.5
    )
    assert other.state is Kip848State.LEAVING


def test_fenced_on_the_way_out() -> None:
    driver = joined(0)
    driver.wait(5)
    ticket = driver.beat.ticket
    driver.feed(driver.machine.close(driver.now))
    driver.refused(E.FENCED_MEMBER_EPOCH, ticket=ticket)
    assert driver.one(fx.Lose).partitions == tps(0)
    assert driver.state is Kip848State.LEFT


def test_refused_on_the_way_out() -> None:
    driver = joined(0)
    driver.wait(5)
    ticket = driver.beat.ticket
    driver.feed(driver.machine.close(driver.now))
    driver.refused(E.UNSUPPORTED_VERSION, ticket=ticket)
    assert driver.kinds() == ["Lose"]
    assert driver.state is Kip848State.LEFT


def test_heartbeats_go_on_while_partitions_are_released_on_close() -> None:
    driver = joined(0)
    driver.feed(driver.machine.unsubscribe(driver.now))
    assert driver.state is Kip848State.UNSUBSCRIBING
    assert driver.machine.topics is None
    assert driver.machine.regex is None
    driver.wait(5)
    beat = driver.beat
    assert (beat.member_epoch, beat.owned, beat.names) == (1, None, None)
    driver.answer(slots(0, 1))
    driver.idle()
    driver.revoked()
    assert driver.beat.member_epoch == -1
    assert driver.state is Kip848State.UNJOINED
    assert driver.machine.unsubscribe(driver.now) == ()


def test_subscribed_again_on_the_way_out() -> None:
    driver = joined(0)
    driver.feed(driver.machine.unsubscribe(driver.now))
    driver.subscribe()
    driver.idle()
    driver.revoked()
    leave, join = [
        e for e in driver.out if isinstance(e, fx.SendConsumerGroupHeartbeat)
    ]
    assert (leave.member_epoch, join.member_epoch) == (-1, 0)


def test_a_stale_commit_asks_for_the_epoch_in_force() -> None:
    driver = joined(0)
    refuse = driver.machine.commit_refused
    assert refuse(E.STALE_MEMBER_EPOCH, ("me", 7), driver.now, 0.5) == ()
    driver.feed(refuse(E.STALE_MEMBER_EPOCH, ("me", 1), driver.now, 0.5))
    assert driver.beat.member_epoch == 1
    driver.answer()
    assert refuse(E.REBALANCE_IN_PROGRESS, ("me", 1), driver.now, 0.5) == ()


def test_a_commit_finds_out_that_the_member_is_fenced() -> None:
    driver = joined(0)
    code, identity = E.FENCED_INSTANCE_ID, ("me", 1)
    assert driver.machine.commit_refused(code, identity, driver.now, 0.5) == ()
    driver = joined(0, group_instance_id="i")
    driver.feed(
        driver.machine.commit_refused(E.UNKNOWN_MEMBER_ID, ("me", 1), driver.now, 0.5)
    )
    assert driver.kinds() == ["Lose", "SendConsumerGroupHeartbeat"]
    driver.answer()
    driver.feed(
        driver.machine.commit_refused(E.FENCED_INSTANCE_ID, ("me", 1), driver.now, 0.5)
    )
    assert isinstance(driver.one(fx.Fail).error, Fenced)


def test_enforcing_a_rebalance_tells_everything() -> None:
    driver = Driver()
    assert driver.machine.enforce_rebalance("why", driver.now) == ()
    driver = joined(0)
    driver.feed(driver.machine.enforce_rebalance("why", driver.now))
    assert driver.beat.owned == slots(0)


def test_late_answers_are_dropped() -> None:
    driver = joined(0)
    assert driver.answer(slots(1), ticket=99) == []
    assert (
        driver.feed(
            driver.machine.request_failed(99, ConnectionLost("x"), driver.now, 0.5)
        )
        == []
    )
    assert not driver.machine.awaits(99)


def test_a_step_without_a_revoke_changes_nothing() -> None:
    driver = joined(0, 1)
    assert driver.machine.step_taken(driver.now) == ()
    driver.wait(5)
    driver.answer(slots(0))
    driver.machine.ledger.report()
    driver.feed(driver.machine.step_taken(driver.now))
    assert driver.one(fx.Revoke).partitions == tps(1)


def test_closing_in_a_hurry_loses_what_is_held() -> None:
    driver = joined(0)
    driver.machine.ledger.hold(driver.machine.ledger.claims(tps(0)))
    driver.feed(driver.machine.close(driver.now))
    assert driver.idle() == []
    driver.feed(driver.machine.lose_all(driver.now))
    assert driver.one(fx.Lose).partitions == tps(0)
    assert driver.beat.member_epoch == -1


def test_a_hold_keeps_a_partition_until_it_ends() -> None:
    driver = joined(0, 1)
    claims = driver.machine.ledger.hold(driver.machine.ledger.claims(tps(1)))
    driver.wait(5)
    driver.answer(slots(0))
    assert driver.idle() == []
    driver.feed(driver.machine.unhold(claims, driver.now))
    assert driver.one(fx.Revoke).partitions == tps(1)


# ---- partitions that are kept from the user


def parked() -> Driver:
    """A member with two partitions, of which one is kept from the user."""
    driver = joined(0, 1)
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    assert driver.one(fx.RequestRevoke).partitions == tps(1)
    assert driver.machine.free == {}
    driver.idle()
    driver.revoked()
    return driver


def test_what_is_withheld_leaves_the_user_and_not_the_group() -> None:
    driver = parked()
    assert driver.kinds() == []
    assert driver.machine.ledger.owned == tps(0)
    assert driver.machine.free == dict.fromkeys(tps(1), -2)
    assert not driver.machine.ignores_withholding
    assert driver.feed(driver.machine.withhold(tps(1), driver.now)) == []
    # Who is asked for everything says that it is still ours.
    driver.feed(driver.machine.enforce_rebalance("", driver.now))
    assert driver.beat.owned == slots(0, 1)
    driver.answer()
    assert driver.kinds() == []
    driver.feed(driver.machine.withhold(frozenset(), driver.now))
    assert driver.one(fx.Assign).added == tps(1)
    assert driver.machine.free == {}
    assert driver.beat.owned == slots(0, 1)
    driver.answer()
    assert driver.state is Kip848State.STABLE


def test_what_the_group_asks_for_meanwhile_goes_afterwards() -> None:
    driver = parked()
    driver.wait(5.0)
    driver.answer(slots(0), member_epoch=2)
    assert driver.beat.owned == slots(0, 1)
    driver.answer()
    assert driver.machine.free == dict.fromkeys(tps(1), -2)
    driver.feed(driver.machine.withhold(frozenset(), driver.now))
    assert driver.beat.owned == slots(0)
    driver.answer()
    assert driver.machine.ledger.owned == tps(0)
    assert driver.state is Kip848State.STABLE


def test_what_is_not_ours_cannot_be_withheld() -> None:
    driver = joined(0)
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    assert driver.machine.ignores_withholding
    assert driver.machine.free == {}
    # Until it is given to us: nobody else has it then.
    driver.wait(5.0)
    driver.answer(slots(0, 1))
    assert not driver.machine.ignores_withholding
    assert driver.machine.free.keys() == tps(1)
    assert driver.machine.ledger.owned == tps(0)


def test_who_is_fenced_keeps_nothing() -> None:
    driver = parked()
    driver.wait(5.0)
    driver.refused(E.FENCED_MEMBER_EPOCH)
    assert driver.machine.free == {}
    assert driver.machine.ignores_withholding


def test_who_is_gone_withholds_nothing() -> None:
    driver = Driver()
    driver.feed(driver.machine.close(driver.now))
    assert driver.feed(driver.machine.withhold(tps(0), driver.now)) == []


def test_a_name_that_comes_late_waits_for_what_the_coordinator_says_of_less() -> None:
    driver = joined()
    driver.wait(5)
    driver.answer(slots(0))  # a topic without a name
    driver.feed(driver.machine.enforce_rebalance("", driver.now))
    ticket = driver.beat.ticket
    assert driver.beat.owned == frozenset()
    assert driver.named() == []  # the coordinator may give it to another member
    driver.answer(slots(0), ticket=ticket)
    driver.wait(0.1)
    driver.one(fx.NameTopics)
    driver.named()
    assert driver.one(fx.Assign).added == tps(0)


def test_one_bad_assignment_is_put_right() -> None:
    driver = joined(0, 1)
    driver.wait(5)
    driver.answer([])
    assert driver.one(fx.RequestRevoke).partitions == tps(0, 1)
    driver.idle()
    driver.revoked()
    assert driver.beat.owned == frozenset()
    driver.answer()
    assert driver.machine.ledger.owned == frozenset()
    driver.wait(5)
    beat = driver.beat
    assert (beat.names, beat.owned, beat.rebalance) == (T, frozenset(), 60.0)
    driver.answer([])  # the same again
    driver.wait(5)
    assert driver.beat.rebalance == 60.0
    driver.answer(slots(0, 1))
    assert driver.one(fx.Assign).added == tps(0, 1)


def test_a_full_heartbeat_is_sent_now_and_then() -> None:
    driver = joined(0)
    full = list[float]()
    began = driver.now
    while driver.now < began + 150:
        driver.wait(5)
        driver.machine.polled(driver.now)
        if driver.beat.rebalance:
            full.append(driver.now - began)
        driver.answer()
    assert full == [5, 65, 125]


def test_no_answer_renames_a_member() -> None:
    driver = joined(0)
    driver.wait(5)
    driver.answer(member_id="nobody")
    assert driver.machine.member_id == "me"
    driver.wait(5)
    assert driver.beat.member_id == "me"


def test_an_assignment_of_a_topic_that_nobody_knows_is_put_right() -> None:
    driver = joined(0)
    driver.wait(5)
    driver.answer([(UUID(int=99), 0)])
    driver.idle()
    driver.revoked()
    assert driver.named({}) == []
    assert driver.state is Kip848State.ACKNOWLEDGING
    driver.answer(ticket=driver.machine._ticket)
    assert driver.state is Kip848State.RECONCILING
    driver.wait(5)
    assert driver.beat.rebalance == 60.0
    driver.answer(slots(0))
    assert driver.one(fx.Assign).added == tps(0)
