"""The machine of a classic group member, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.assignors import ASSIGNORS
from kafkaio._machines.membership.classic.membership import (
    ClassicMemberConfig,
    ClassicMembership,
)
from kafkaio._machines.membership.classic.states import ClassicState
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import (
    Subscription,
    decode_assignment,
    decode_free,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkaio.errors import (
    AuthenticationError,
    ConnectionLost,
    Fenced,
    GroupError,
    KafkaError,
    MembershipError,
    ProtocolError,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import TopicPartition

E = ErrorCode
EffectT = TypeVar("EffectT", bound=fx.Effect)
COOPERATIVE = ASSIGNORS["cooperative-sticky"]
RANGE = ASSIGNORS["range"]
T = frozenset({"t"})


def tps(*numbers: int, topic: str = "t") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, n) for n in numbers)


class Driver:
    """A machine with its clock, and what it asked for."""

    def __init__(self, **options: Any) -> None:
        options = {"assignors": (COOPERATIVE,), "group_id": "g", **options}
        self.machine = ClassicMembership(
            ClassicMemberConfig(session=10.0, interval=3.0, rebalance=60.0, **options)
        )
        self.now = 100.0
        self.out: list[fx.Effect] = []
        self.generation = 0

    @property
    def state(self) -> ClassicState:
        return self.machine.state

    def feed(self, effects: Iterable[fx.Effect]) -> list[fx.Effect]:
        self.out = list(effects)
        for effect in effects:
            if isinstance(effect, fx.RequestRevoke) and effect.is_leaving:
                self.out += self.machine.release(effect.partitions, self.now)
        return self.out

    def one(self, kind: type[EffectT]) -> EffectT:
        (found,) = (effect for effect in self.out if isinstance(effect, kind))
        return found

    def kinds(self) -> list[str]:
        return [type(effect).__name__ for effect in self.out]

    def subscribe(self, topics: frozenset[str] = T) -> list[fx.Effect]:
        return self.feed(self.machine.subscribe(topics, self.now))

    def wait(self, seconds: float) -> list[fx.Effect]:
        self.now += seconds
        return self.feed(self.machine.tick(self.now))

    def joined(self, **options: Any) -> list[fx.Effect]:
        """JoinGroup is answered; as a follower unless said otherwise."""
        ticket = options.pop("ticket", None) or self.one(fx.SendJoin).ticket
        self.generation += 1
        reply = JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self.machine.config.assignors[0].name,
            leader="other",
            member_id="me",
        )
        for name, value in options.items():
            setattr(reply, name, value)
        return self.feed(self.machine.join_answered(ticket, reply, self.now, 0.5))

    def refused(self, code: int, **options: Any) -> list[fx.Effect]:
        return self.joined(error_code=code, **options)

    def synced(
        self, partitions: frozenset[TopicPartition] = frozenset(), **options: Any
    ) -> list[fx.Effect]:
        ticket = options.pop("ticket", None) or self.one(fx.SendSync).ticket
        reply = SyncGroupResponse(assignment=encode_assignment(partitions))
        for name, value in options.items():
            setattr(reply, name, value)
        return self.feed(self.machine.sync_answered(ticket, reply, self.now, 0.5))

    def beat(self, code: int = 0) -> list[fx.Effect]:
        ticket = self.one(fx.SendHeartbeat).ticket
        return self.feed(self.machine.heartbeat_answered(ticket, code, self.now, 0.5))

    def probed(self, ticket: int, *, is_silent: bool = False) -> list[fx.Effect]:
        return self.feed(
            self.machine.probe_ended(ticket, self.now, 0.5, is_silent=is_silent)
        )

    def revoked(self, *, in_time: bool = True) -> list[fx.Effect]:
        claims = self.one(fx.Revoke).claims
        return self.feed(self.machine.revoke_ended(claims, self.now, in_time=in_time))

    def step(self) -> list[fx.Effect]:
        self.machine.ledger.report()
        return self.feed(self.machine.step_taken(self.now))

    def failed(self, ticket: int, error: KafkaError | None = None) -> list[fx.Effect]:
        error = error or ConnectionLost("gone")
        return self.feed(self.machine.request_failed(ticket, error, self.now, 0.5))

    def stable(self, partitions: frozenset[TopicPartition] | None = None) -> Driver:
        self.subscribe()
        self.joined()
        self.synced(tps(0, 1) if partitions is None else partitions)
        assert self.state is ClassicState.STABLE
        return self

    def leading(self, counts: dict[str, int] | None = None) -> Driver:
        self.subscribe()
        self.joined(leader="me", members=[self.member("me")])
        ticket = self.one(fx.ResolveTopics).ticket
        counts = {"t": 2} if counts is None else counts
        self.feed(self.machine.topics_resolved(ticket, Layout(counts), self.now))
        return self

    @staticmethod
    def member(member_id: str, **fields: Any) -> JoinGroupResponseMember:
        blob = encode_subscription(Subscription(**{"topics": T, **fields}))
        return JoinGroupResponseMember(member_id=member_id, metadata=blob)


def eager() -> Driver:
    return Driver(assignors=(RANGE,))


# ---- joining


def test_a_follower_joins_and_gets_its_share() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    assert join.member_id == ""
    ((name, blob),) = join.protocols
    assert name == "cooperative-sticky"
    assert decode_subscription(blob).topics == T
    driver.joined()
    sync = driver.one(fx.SendSync)
    assert (sync.member_id, sync.generation, sync.assignments) == ("me", 1, ())
    driver.synced(tps(0, 1))
    assert driver.out == [fx.Assign(tps(0, 1), tps(0, 1))]
    assert not driver.machine.is_leader
    assert driver.machine.group_topics == frozenset()
    assert repr(driver.machine) == (
        "<ClassicMembership 'g' STABLE gen=1 | 2 owned, 0 being revoked>"
    )


def test_the_given_member_id_is_used_at_once() -> None:
    driver = Driver()
    driver.subscribe()
    driver.refused(E.MEMBER_ID_REQUIRED, member_id="given")
    assert driver.one(fx.SendJoin).member_id == "given"


def test_the_leader_divides() -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined(leader="me", members=[driver.member("me"), driver.member("you")])
    resolve = driver.one(fx.ResolveTopics)
    assert resolve.topics == T == driver.machine.group_topics
    assert driver.state is ClassicState.ASSIGNING
    driver.feed(
        driver.machine.topics_resolved(resolve.ticket, Layout({"t": 3}), driver.now)
    )
    shares = dict(driver.one(fx.SendSync).assignments)
    assert decode_assignment(shares["me"]) | decode_assignment(shares["you"]) == tps(
        0, 1, 2
    )
    late = driver.machine.topics_resolved(resolve.ticket, Layout({"t": 9}), driver.now)
    assert late == ()


def test_a_returning_static_leader_assigns_nothing() -> None:
    driver = Driver(group_instance_id="i")
    driver.subscribe()
    driver.joined(leader="me", members=[driver.member("me")], skip_assignment=True)
    assert driver.one(fx.SendSync).assignments == ()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE
    assert driver.machine.is_leader


def test_a_heartbeat_keeps_a_slow_leader_alive() -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined(leader="me", members=[driver.member("me")])
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    assert driver.state is ClassicState.JOINING


@pytest.mark.parametrize(
    ("code", "delay", "member_id"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, 0.1, ""),
        (E.NOT_COORDINATOR, 0.1, ""),
        (E.COORDINATOR_NOT_AVAILABLE, 0.1, ""),
        (E.REBALANCE_IN_PROGRESS, 0.0, ""),
        (E.UNKNOWN_MEMBER_ID, 0.0, ""),
        (E.ILLEGAL_GENERATION, 0.0, ""),
    ],
)
def test_a_refused_join_is_tried_again(code: E, delay: float, member_id: str) -> None:
    driver = Driver()
    driver.subscribe()
    driver.refused(code)
    forgets = code in {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE}
    assert ("ForgetCoordinator" in driver.kinds()) == forgets
    if delay:
        assert driver.machine.next_deadline() == pytest.approx(driver.now + delay)
        driver.wait(delay)
    assert driver.one(fx.SendJoin).member_id == member_id
    # The second time it backs off in any case.
    driver.refused(code)
    assert "SendJoin" not in driver.kinds()
    due = driver.machine.next_deadline()
    assert due is not None
    assert due > driver.now
    driver.wait(due - driver.now)
    assert "SendJoin" in driver.kinds()


def test_refused_credentials_are_told_and_tried_again() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    refusal = AuthenticationError("wrong password")
    driver.failed(driver.one(fx.SendHeartbeat).ticket, refusal)
    assert driver.one(fx.ReportError).error is refusal
    assert "ForgetCoordinator" in driver.kinds()
    assert driver.state is ClassicState.STABLE
    due = driver.machine.next_deadline()
    assert due is not None
    assert due > driver.now
    driver.wait(due - driver.now)
    driver.beat()
    assert driver.state is ClassicState.STABLE


#: What no repetition of JoinGroup, SyncGroup or Heartbeat changes.
FINAL = {
    E.INVALID_GROUP_ID,
    E.INVALID_SESSION_TIMEOUT,
    E.INCONSISTENT_GROUP_PROTOCOL,
    E.FENCED_INSTANCE_ID,
    E.UNSUPPORTED_VERSION,
}
#: What somebody else may change, or nobody knows.
DENIALS = [
    E.GROUP_AUTHORIZATION_FAILED,
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
        driver.refused(code, member_id="")
        assert driver.kinds() == ["ReportError"]
        assert "'g'" in str(driver.one(fx.ReportError).error)
        assert driver.machine.next_deadline() == pytest.approx(driver.now + delay)
        driver.wait(delay)
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE
    assert driver.one(fx.Assign).added == tps(0)


@denials
def test_a_denied_sync_is_told_and_the_member_joins_again(code: int) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined()
    driver.synced(error_code=code)
    assert driver.kinds() == ["ReportError"]
    driver.wait(0.1)
    assert driver.one(fx.SendJoin).member_id == "me"


@denials
def test_denied_heartbeats_keep_all_within_the_session(code: int) -> None:
    driver = Driver().stable(tps(0, 1))
    driver.wait(3.0)
    began = driver.now
    while driver.now < began + 6.0:
        driver.beat(code)
        assert driver.kinds() == ["ReportError"]
        assert driver.machine.ledger.owned == tps(0, 1)
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(due - driver.now)
    driver.beat()
    assert driver.state is ClassicState.STABLE
    driver.wait(3.0)
    assert driver.machine.ledger.owned == tps(0, 1)


@denials
def test_who_is_denied_for_a_session_has_been_removed(code: int) -> None:
    driver = Driver().stable(tps(0, 1))
    driver.wait(3.0)
    driver.beat(code)
    began = driver.now
    seen = list[fx.Effect]()
    while driver.machine.ledger.owned:
        due = driver.machine.next_deadline()
        assert due is not None
        seen += driver.wait(due - driver.now)
        if "SendHeartbeat" in driver.kinds():
            driver.beat(code)
    assert driver.now == pytest.approx(began + 7.0)
    assert [e.partitions for e in seen if isinstance(e, fx.Lose)] == [tps(0, 1)]
    assert driver.state is ClassicState.JOINING
    assert driver.one(fx.SendJoin).member_id == ""
    driver.refused(code, member_id="")
    driver.wait(1.0)
    driver.joined(member_id="new")
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE


def test_a_coordinator_that_asks_for_a_member_id_for_ever_is_not_hammered() -> None:
    driver = Driver()
    driver.subscribe()
    driver.refused(E.MEMBER_ID_REQUIRED, member_id="one")
    assert driver.one(fx.SendJoin).member_id == "one"
    driver.refused(E.MEMBER_ID_REQUIRED, member_id="two")
    for delay in (0.2, 0.4, 0.8):
        assert driver.one(fx.SendJoin).member_id == "two"
        driver.refused(E.MEMBER_ID_REQUIRED, member_id="two")
        due = driver.machine.next_deadline()
        assert due == pytest.approx(driver.now + delay)
        driver.wait(delay)


def test_no_session_ends_while_the_join_waits_for_others() -> None:
    driver = Driver().stable(tps(0, 1))
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    driver.refused(E.GROUP_AUTHORIZATION_FAILED)
    driver.wait(0.1)
    join = driver.one(fx.SendJoin)
    assert join.member_id == "me"
    end = driver.now + 60
    while driver.now < end:
        due = driver.machine.next_deadline()
        assert due is not None
        assert due > driver.now
        driver.wait(due - driver.now)
        if "SendProbe" in driver.kinds():
            driver.probed(driver.one(fx.SendProbe).ticket)
        assert "SendJoin" not in driver.kinds()
        driver.machine.polled(driver.now)
    assert driver.machine.ledger.owned == tps(0, 1)
    driver.joined(ticket=join.ticket)
    driver.synced(tps(0))
    driver.wait(3.0)
    assert driver.machine.ledger.owned == tps(0, 1)


def test_a_right_that_the_look_up_lacks_is_a_denial() -> None:
    driver = Driver().stable(tps(0))
    driver.wait(3.0)
    missing = broker_error(E.GROUP_AUTHORIZATION_FAILED, "find the coordinator of 'g'")
    driver.failed(driver.one(fx.SendHeartbeat).ticket, missing)
    assert driver.kinds() == ["ReportError", "ForgetCoordinator"]
    assert driver.state is ClassicState.STABLE
    driver.wait(0.1)
    final = broker_error(E.INVALID_GROUP_ID, "find the coordinator of 'g'")
    driver.failed(driver.one(fx.SendHeartbeat).ticket, final)
    assert driver.state is ClassicState.STABLE  # it is doubted
    driver = Driver()
    driver.subscribe()
    driver.failed(driver.one(fx.SendJoin).ticket, final)
    assert driver.state is ClassicState.FATAL


def still_refused(driver: Driver, code: int) -> None:
    """The member repeats what is refused, for ten seconds."""
    began = driver.now
    while driver.state is not ClassicState.FATAL:
        assert driver.now < began + 12
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(max(0.0, due - driver.now))
        driver.machine.polled(driver.now)
        if "SendJoin" in driver.kinds():
            driver.joined()
            driver.synced(error_code=code)
        if "SendHeartbeat" in driver.kinds():
            driver.beat(code)


@pytest.mark.parametrize("code", sorted(FINAL) + DENIALS)
def test_one_bad_answer_to_a_heartbeat_costs_nothing(code: int) -> None:
    driver = Driver().stable(tps(0))
    for _ in range(5):
        while "SendHeartbeat" not in driver.kinds():
            driver.wait(0.5)
        driver.beat(code)
        assert "ReportError" in driver.kinds()
        assert driver.machine.ledger.owned == tps(0)
        driver.wait(0.5)
        driver.beat()  # which ends the doubt
        assert driver.state is ClassicState.STABLE
        driver.wait(3)


@pytest.mark.parametrize("code", sorted(FINAL))
def test_one_bad_answer_to_a_sync_is_repeated(code: int) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined()
    driver.synced(error_code=code)
    assert driver.kinds() == ["ReportError"]
    driver.wait(1)
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE


@pytest.mark.parametrize("code", [int(code) for code in E])
def test_every_code_has_an_answer(code: int) -> None:
    for api in ("join", "sync", "heartbeat"):
        driver = Driver(group_instance_id="i")
        if api == "join":
            driver.subscribe()
            driver.refused(code)
        elif api == "sync":
            driver.subscribe()
            driver.joined()
            driver.synced(error_code=code)
        else:
            driver.stable(tps(0)).wait(3.0)
            driver.beat(code)
        if api != "join" and code in FINAL - _UNUSUAL[api]:
            still_refused(driver, code)
        is_over = driver.state is ClassicState.FATAL
        assert is_over == (code in FINAL - _UNUSUAL[api])
        assert ("Fail" in driver.kinds()) == is_over
        if is_over:
            # One that was replaced has no place to give up.
            left = "SendLeave" in driver.kinds()
            assert not left  # a static member is expected back
        elif code != E.NONE:
            assert driver.machine.next_deadline() is not None


_UNUSUAL = {
    "join": set[E](),
    # These two check nothing that the first of these codes are about.
    "sync": {E.INVALID_SESSION_TIMEOUT, E.UNSUPPORTED_VERSION},
    "heartbeat": {
        E.INVALID_SESSION_TIMEOUT,
        E.UNSUPPORTED_VERSION,
        E.INCONSISTENT_GROUP_PROTOCOL,
    },
}


@pytest.mark.parametrize("code", sorted(FINAL))
def test_a_final_refusal_ends_it(code: int) -> None:
    driver = Driver(group_instance_id="i")
    driver.subscribe()
    driver.refused(code)
    error = driver.one(fx.Fail).error
    assert "'g'" in str(error)
    if code == E.INCONSISTENT_GROUP_PROTOCOL:
        assert "cooperative-sticky" in str(error)
    assert driver.state is ClassicState.FATAL
    assert driver.machine.has_ended
    assert driver.machine.next_deadline() is None
    assert driver.subscribe(frozenset({"u"})) == []
    assert driver.feed(driver.machine.unsubscribe(driver.now)) == []
    assert driver.feed(driver.machine.close(driver.now)) == []
    assert driver.wait(1000.0) == []


@pytest.mark.parametrize(
    "change", [{"protocol_type": "connect"}, {"protocol_name": "x"}]
)
def test_a_group_of_another_kind_is_refused(change: dict[str, str]) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined(**change)
    error = driver.one(fx.Fail).error
    assert isinstance(error, GroupError)
    assert "cooperative-sticky" in str(error)
    # One that was let in doubts it.
    driver = Driver()
    driver.subscribe()
    for _ in range(12):
        driver.joined()
        driver.synced(tps(0), **change)
        if driver.state is not ClassicState.JOINING:
            break
        assert isinstance(driver.one(fx.ReportError).error, GroupError)
        driver.wait(1)
    assert isinstance(driver.one(fx.Fail).error, GroupError)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"protocol_type": "connect"}, "protocol type 'connect'"),
        ({"protocol_type": "consumer", "protocol_name": "range"}, "assignor 'range'"),
        ({}, "another assignor"),
    ],
)
def test_a_refusal_says_what_we_offer_and_what_they_do(
    found: dict[str, str], text: str
) -> None:
    driver = Driver(assignors=(COOPERATIVE, ASSIGNORS["sticky"]))
    driver.subscribe()
    nothing = {"protocol_type": None, "protocol_name": None}
    driver.refused(E.INCONSISTENT_GROUP_PROTOCOL, **(nothing | found))
    error = driver.one(fx.Fail).error
    assert isinstance(error, GroupError)
    assert "offers cooperative-sticky, sticky" in str(error)
    assert text in str(error)


def test_sticky_tells_the_group_what_it_had_though_it_gave_it_up() -> None:
    driver = Driver(assignors=(ASSIGNORS["sticky"],)).stable()
    driver.feed(driver.machine.enforce_rebalance("asked", driver.now))
    driver.step()
    driver.revoked()
    ((_, blob),) = driver.one(fx.SendJoin).protocols
    sent = decode_subscription(blob)
    assert sent.owned == frozenset()
    had = Subscription(topics=T, owned=tps(0, 1), generation=1)
    assert sent.user_data == ASSIGNORS["sticky"].user_data(had)


def test_nonsense_is_an_error() -> None:
    driver = Driver()
    driver.subscribe()
    bad = JoinGroupResponseMember(member_id="me", metadata=b"?")
    for _ in range(12):
        driver.joined(leader="me", members=[bad])
        if driver.state is not ClassicState.JOINING:
            break
        assert isinstance(driver.one(fx.ReportError).error, ProtocolError)
        driver.wait(1)
    assert isinstance(driver.one(fx.Fail).error, ProtocolError)
    driver = Driver()
    driver.subscribe()
    driver.joined()
    driver.synced(assignment=b"")
    assert isinstance(driver.one(fx.ReportError).error, ProtocolError)
    driver.wait(1)
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_sync_that_fails_in_passing_joins_again(code: E) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined()
    driver.synced(error_code=code)
    assert driver.state is ClassicState.JOINING
    driver.wait(0.2)
    assert driver.one(fx.SendJoin).member_id == "me"


def test_a_generation_that_no_sync_completed_can_be_undone() -> None:
    driver = Driver().stable(tps(0))
    machine = driver.machine
    assert not machine.restore_generation()  # this one is complete
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    driver.joined()
    assert machine.generation == 2
    assert machine.is_joining
    assert not machine.restore_generation()  # the answer to the SyncGroup decides
    driver.synced(error_code=E.NOT_COORDINATOR)
    assert (driver.state, machine.generation) == (ClassicState.JOINING, 2)
    assert machine.restore_generation()
    assert machine.generation == 1
    assert not machine.restore_generation()
    assert machine.ledger.owned == tps(0)
    driver.wait(1.0)
    driver.joined()
    driver.synced(tps(0))
    assert (driver.state, machine.generation) == (ClassicState.STABLE, 3)


def test_a_lost_member_has_no_generation_to_return_to() -> None:
    driver = Driver().stable(tps(0))
    driver.wait(3.0)
    driver.beat(E.ILLEGAL_GENERATION)
    driver.joined()
    driver.synced(error_code=E.NOT_COORDINATOR)
    assert not driver.machine.restore_generation()
    assert driver.machine.generation == 2


@pytest.mark.parametrize(
    ("code", "member_id"),
    [
        (E.REBALANCE_IN_PROGRESS, "me"),
        (E.ILLEGAL_GENERATION, "me"),
        (E.UNKNOWN_MEMBER_ID, ""),
    ],
)
def test_a_sync_in_vain_joins_again(code: E, member_id: str) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined()
    driver.synced(error_code=code)
    assert driver.one(fx.SendJoin).member_id == member_id


def test_late_answers_are_dropped() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    driver.joined()
    sync = driver.one(fx.SendSync)
    assert driver.joined(ticket=join.ticket) == []
    driver.synced(tps(0), ticket=sync.ticket)
    assert driver.synced(tps(1), ticket=sync.ticket) == []
    assert driver.failed(join.ticket) == []
    assert driver.feed(driver.machine.leave_ended(99, driver.now)) == []
    late = driver.machine.heartbeat_answered(99, E.UNKNOWN_MEMBER_ID, driver.now, 0.5)
    assert late == ()
    assert driver.state is ClassicState.STABLE
    assert driver.machine.ledger.owned == tps(0)


def test_no_connection_means_another_try() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    driver.failed(join.ticket)
    assert driver.kinds() == ["ForgetCoordinator"]
    driver.wait(0.15)
    driver.failed(driver.one(fx.SendJoin).ticket, UnsupportedVersion("old"))
    assert isinstance(driver.one(fx.Fail).error, UnsupportedVersion)


# ---- staying


def test_heartbeats_come_at_the_interval() -> None:
    driver = eager().stable()
    assert driver.machine.next_deadline() == driver.now + 3.0
    assert driver.wait(2.9) == []
    driver.wait(0.1)
    beat = driver.one(fx.SendHeartbeat)
    assert (beat.member_id, beat.generation, beat.timeout) == ("me", 1, 5.0)
    assert driver.wait(3.0) == []


def test_a_follower_of_a_cooperative_group_expects_a_second_generation() -> None:
    driver = Driver().stable()
    start, sent = driver.now, list[float]()
    while driver.now < start + 12.0:
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(due - driver.now)
        sent.append(round(driver.now - start, 6))
        driver.beat()
    assert sent == [0.1, 0.3, 0.7, 1.5, 3.1, 6.1, 9.1, 12.1]


def test_a_leader_expects_one_if_its_assignment_takes_partitions() -> None:
    driver = Driver()
    driver.subscribe()
    members = [driver.member("me"), driver.member("you", owned=tps(0, 1))]
    driver.joined(leader="me", members=members)
    resolve = driver.one(fx.ResolveTopics).ticket
    layout = Layout({"t": 2})
    driver.feed(driver.machine.topics_resolved(resolve, layout, driver.now))
    driver.synced()
    assert driver.machine.next_deadline() == driver.now + 0.1


def after(driver: Driver, seconds: float) -> list[fx.Effect]:
    """What the machine does until then, with every heartbeat answered."""
    done: list[fx.Effect] = []
    end = driver.now + seconds
    while (due := driver.machine.next_deadline()) is not None and due <= end:
        driver.machine.polled(due)
        done += driver.wait(due - driver.now)
        if "SendHeartbeat" in driver.kinds():
            done += driver.beat()
    driver.now = end
    return done


@pytest.mark.parametrize("restarted", ["a member", "the leader"])
def test_a_leader_ends_a_handover_that_a_restart_has_cut_short(restarted: str) -> None:
    # A static member that had to release a partition got its assignment again.
    driver = Driver(group_instance_id="i")
    driver.subscribe()
    members = [driver.member("me"), driver.member("you", owned=tps(0, 1))]
    is_leader = restarted == "the leader"
    driver.joined(leader="me", members=members, skip_assignment=is_leader)
    if not is_leader:
        resolve = driver.one(fx.ResolveTopics).ticket
        layout = Layout({"t": 2})
        driver.feed(driver.machine.topics_resolved(resolve, layout, driver.now))
    driver.synced()
    assert not [e for e in after(driver, 69.9) if isinstance(e, fx.SendJoin)]
    (join,) = [e for e in after(driver, 0.2) if isinstance(e, fx.SendJoin)]
    assert join.reason == "a member did not join again after a revocation"


def test_a_leader_that_takes_nothing_expects_none() -> None:
    driver = Driver().leading()
    driver.synced(tps(0, 1))
    assert driver.machine.next_deadline() == driver.now + 3.0


def test_metadata_is_refreshed_before_a_pattern_joins() -> None:
    driver = Driver()
    driver.machine.matches_on_client = True
    driver.subscribe()
    refresh = driver.one(fx.RefreshTopics)
    assert driver.kinds() == ["RefreshTopics"]
    assert refresh.timeout == pytest.approx(10 / 3)
    # What came with it is in the JoinGroup.
    assert driver.subscribe(frozenset("tu")) == []
    driver.feed(driver.machine.topics_refreshed(refresh.ticket, driver.now))
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.topics == frozenset("tu")
    # The id that the coordinator gives is no reason to ask again.
    driver.refused(E.MEMBER_ID_REQUIRED, member_id="me")
    driver.joined()
    driver.synced(tps(0))
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    again = driver.one(fx.RefreshTopics)
    assert again.ticket != refresh.ticket
    late = driver.machine.topics_refreshed(refresh.ticket, driver.now)
    assert driver.feed(late) == []
    driver.feed(driver.machine.topics_refreshed(again.ticket, driver.now))
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE  # and needs no third generation


def test_a_join_waits_for_metadata_for_a_while_only() -> None:
    driver = Driver()
    driver.machine.matches_on_client = True
    driver.subscribe()
    refresh = driver.one(fx.RefreshTopics)
    assert driver.machine.next_deadline() == driver.now + refresh.timeout
    assert driver.wait(refresh.timeout - 0.5) == []
    driver.wait(0.5)
    assert driver.kinds() == ["SendJoin"]
    join = driver.one(fx.SendJoin).ticket
    driver.feed(driver.machine.topics_refreshed(refresh.ticket, driver.now))
    assert driver.kinds() == []
    driver.joined(ticket=join)
    assert driver.state is ClassicState.SYNCING


def test_who_unsubscribes_while_metadata_is_refreshed_does_not_join() -> None:
    driver = Driver()
    driver.machine.matches_on_client = True
    driver.subscribe()
    refresh = driver.one(fx.RefreshTopics)
    driver.feed(driver.machine.unsubscribe(driver.now))
    driver.feed(driver.machine.topics_refreshed(refresh.ticket, driver.now))
    assert driver.out == []
    assert driver.state is ClassicState.UNJOINED


def test_a_failing_heartbeat_is_repeated_soon() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    driver.failed(driver.one(fx.SendHeartbeat).ticket)
    assert driver.kinds() == ["ForgetCoordinator"]
    driver.wait(0.1)
    driver.beat(E.NOT_COORDINATOR)
    assert driver.kinds() == ["ForgetCoordinator"]
    driver.wait(0.3)
    driver.beat(E.COORDINATOR_LOAD_IN_PROGRESS)
    assert driver.kinds() == []
    driver.wait(1.0)
    driver.beat()
    assert driver.state is ClassicState.STABLE


def test_a_silent_coordinator_is_abandoned_with_the_session() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    old = driver.one(fx.SendHeartbeat)
    assert driver.machine.next_deadline() == driver.now + 7.0
    driver.wait(7.0)
    assert driver.kinds() == ["ForgetCoordinator", "SendHeartbeat"]
    assert not driver.machine.awaits(old.ticket)
    assert driver.machine.awaits(driver.one(fx.SendHeartbeat).ticket)
    assert driver.machine.ledger.owned == tps(0, 1)


def test_who_slept_through_its_session_asks_again_before_it_joins() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    driver.now += 10.0  # and nothing ran
    driver.beat(E.REBALANCE_IN_PROGRESS)
    assert driver.kinds() == ["ForgetCoordinator", "SendHeartbeat"]
    driver.beat(E.UNKNOWN_MEMBER_ID)
    assert driver.one(fx.Lose).partitions == tps(0, 1)
    assert driver.one(fx.SendJoin).member_id == ""


def test_a_parked_join_goes_on_while_the_coordinator_gives_signs_of_life() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    for _ in range(30):
        assert driver.machine.next_deadline() == driver.now + 3.0
        assert driver.wait(2.9) == []
        driver.wait(0.1)
        probe = driver.one(fx.SendProbe)
        assert driver.machine.next_deadline() is None
        assert driver.probed(probe.ticket) == []
    driver.joined(ticket=join.ticket)
    # And so for the SyncGroup.
    assert driver.machine.next_deadline() == driver.now + 3.0


def test_a_coordinator_that_is_silent_loses_what_is_parked() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    driver.wait(3.0)
    probe = driver.one(fx.SendProbe)
    # Noticed within the session, with time left to find another.
    assert 3.0 + probe.timeout < driver.machine.config.session
    driver.now += probe.timeout
    driver.probed(probe.ticket, is_silent=True)
    assert driver.kinds() == ["ForgetCoordinator"]
    assert not driver.machine.awaits(join.ticket)
    driver.wait(1.0)
    driver.joined(ticket=driver.one(fx.SendJoin).ticket)
    sync = driver.one(fx.SendSync)
    driver.wait(3.0)
    driver.probed(driver.one(fx.SendProbe).ticket, is_silent=True)
    assert driver.state is ClassicState.JOINING
    assert not driver.machine.awaits(sync.ticket)
    assert driver.machine.member_id == "me"


def test_a_late_sign_of_life_changes_nothing() -> None:
    driver = Driver()
    driver.subscribe()
    driver.wait(3.0)
    probe = driver.one(fx.SendProbe)
    driver.joined(ticket=1)
    driver.synced(tps(0))
    assert driver.probed(probe.ticket, is_silent=True) == []
    assert driver.probed(probe.ticket + 7) == []
    assert driver.state is ClassicState.STABLE


@pytest.mark.parametrize("session", [1.0, 6.0, 10.0, 45.0, 300.0])
@pytest.mark.parametrize("share", [0.1, 1 / 3])
def test_silence_is_noticed_within_the_session(session: float, share: float) -> None:
    config = ClassicMemberConfig(
        group_id="g", assignors=(RANGE,), session=session, interval=session * share
    )
    assert config.interval + config.answer_timeout < session


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(E.ILLEGAL_GENERATION, "me"), (E.UNKNOWN_MEMBER_ID, "")],
)
def test_out_of_the_group_all_is_lost(code: E, member_id: str) -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    driver.beat(code)
    assert driver.kinds() == ["Lose", "SendJoin"]
    assert driver.one(fx.Lose).partitions == tps(0, 1)
    join = driver.one(fx.SendJoin)
    assert join.member_id == member_id
    assert decode_subscription(join.protocols[0][1]).owned == frozenset()
    assert decode_subscription(join.protocols[0][1]).generation == -1


def test_a_fenced_member_ends() -> None:
    driver = Driver(group_instance_id="i").stable()
    driver.wait(3.0)
    driver.beat(E.FENCED_INSTANCE_ID)
    assert driver.kinds() == ["Lose", "Fail"]
    assert isinstance(driver.one(fx.Fail).error, Fenced)


# ---- cooperative rebalances


def test_partitions_are_kept_through_a_cooperative_rebalance() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert (said.owned, said.generation) == (tps(0, 1), 1)
    driver.joined()
    driver.synced(tps(0, 1, 2))
    assert driver.out == [fx.Assign(tps(2), tps(0, 1, 2))]


def shrink(driver: Driver, left: frozenset[TopicPartition]) -> None:
    driver.stable(tps(0, 1, 2))
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    driver.joined()
    driver.synced(left)


def test_a_revoke_waits_for_the_step_and_then_the_group_hears() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    assert driver.state is ClassicState.RELEASING
    assert driver.out == [
        fx.RequestRevoke(tps(1, 2), driver.now + 54.0),
        fx.Assign(frozenset(), tps(0, 1, 2)),
    ]
    driver.wait(3.0)
    assert driver.kinds() == ["SendHeartbeat"]
    driver.beat()
    assert driver.machine.ledger.pending == tps(1, 2)
    driver.step()
    assert driver.one(fx.Revoke).partitions == tps(1, 2)
    driver.revoked()
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.owned == tps(0)
    assert driver.step() == []


def test_the_idle_ones_go_first_and_the_others_may_follow() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    driver.feed(driver.machine.release(tps(1), driver.now))
    assert driver.one(fx.Revoke).partitions == tps(1)
    assert driver.revoked() == []
    # One JoinGroup for both if the other is done within an interval ...
    driver.step()
    driver.revoked()
    assert driver.kinds() == ["SendJoin"]
    # ... and one for the first alone if it is not.
    driver = Driver()
    shrink(driver, tps(0))
    driver.feed(driver.machine.release(tps(1), driver.now))
    driver.revoked()
    driver.wait(2.9)
    assert "SendJoin" not in driver.kinds()
    driver.wait(0.1)
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.owned == tps(0, 2)
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.RELEASING
    assert "RequestRevoke" not in driver.kinds()
    assert driver.machine.ledger.pending == tps(2)


def test_a_deadline_loses_what_is_still_held() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    driver.machine.polled(driver.now)
    deadline = driver.one(fx.RequestRevoke).deadline
    while driver.now < deadline - 3.0:
        if "SendHeartbeat" in driver.kinds():
            driver.beat()
        driver.wait(3.0)
    driver.beat()
    driver.wait(deadline - driver.now)
    assert driver.one(fx.Lose).partitions == tps(1, 2)
    assert driver.one(fx.SendJoin).reason == "revoked partitions were released"


def test_a_callback_that_does_not_end_loses_its_partitions() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    driver.step()
    driver.revoked(in_time=False)
    assert driver.one(fx.Lose).partitions == tps(1, 2)
    assert "SendJoin" in driver.kinds()


def test_a_rebalance_goes_on_while_a_partition_is_held() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.owned == tps(0, 1, 2)
    # The application finishes while the JoinGroup is under way, which listed the
    # partition, so a second one has to follow.
    driver.joined()
    sync = driver.one(fx.SendSync)
    driver.step()
    driver.revoked()
    assert driver.state is ClassicState.SYNCING
    driver.synced(tps(0), ticket=sync.ticket)
    assert driver.kinds() == ["Assign", "SendJoin"]


def test_assigned_again_after_its_release_is_a_new_assignment() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    old = driver.machine.ledger.numbers[TopicPartition("t", 1)]
    driver.step()
    driver.revoked()
    driver.joined()
    driver.synced(tps(0, 1))
    assert driver.one(fx.Assign).added == tps(1)
    assert driver.machine.ledger.numbers[TopicPartition("t", 1)] > old


# ---- eager rebalances


def test_eager_gives_everything_up_before_it_joins() -> None:
    driver = eager().stable()
    driver.wait(3.0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    assert driver.state is ClassicState.PREPARING
    assert driver.one(fx.RequestRevoke).partitions == tps(0, 1)
    driver.wait(3.0)
    assert driver.kinds() == ["SendHeartbeat"]
    driver.beat(E.REBALANCE_IN_PROGRESS)
    assert driver.state is ClassicState.PREPARING
    driver.step()
    driver.revoked()
    join = driver.one(fx.SendJoin)
    assert decode_subscription(join.protocols[0][1]).owned == frozenset()
    driver.joined()
    driver.synced(tps(1))
    assert driver.out == [fx.Assign(tps(1), tps(1))]


def test_eager_is_what_a_mixture_can_do() -> None:
    assert not ClassicMemberConfig(
        group_id="g", assignors=(COOPERATIVE, RANGE)
    ).is_cooperative
    assert ClassicMemberConfig(group_id="g", assignors=(RANGE,)).revoke_timeout == 294.0
    short = ClassicMemberConfig(group_id="g", assignors=(RANGE,), rebalance=4.0)
    assert short.revoke_timeout == 2.0


# ---- the leader watches


def test_new_partitions_make_the_leader_rebalance() -> None:
    driver = Driver().leading()
    driver.synced(tps(0, 1))
    same = driver.machine.metadata_changed(Layout({"t": 2, "other": 1}), driver.now)
    assert same == ()
    driver.feed(driver.machine.metadata_changed(Layout({"t": 3}), driver.now))
    assert driver.one(fx.SendJoin).reason == "the topics of the group changed"


def test_a_change_during_the_rebalance_is_not_forgotten() -> None:
    driver = Driver().leading()
    driver.machine.metadata_changed(Layout({"t": 3}), driver.now)
    assert driver.state is ClassicState.SYNCING
    driver.synced(tps(0, 1))
    assert driver.kinds() == ["Assign", "SendJoin"]


@pytest.mark.parametrize("rack", [None, "x"])
def test_new_racks_make_the_leader_rebalance_if_members_have_any(
    rack: str | None,
) -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined(leader="me", members=[driver.member("me", rack=rack)])
    ticket = driver.one(fx.ResolveTopics).ticket
    (tp,) = tps(0)
    before = Layout({"t": 1}, {tp: 1}, {tp: frozenset({"y", "z"})})
    driver.feed(driver.machine.topics_resolved(ticket, before, driver.now))
    driver.synced(tps(0))
    # A broker that is down, and a leader that has moved, are no reason.
    fewer = Layout({"t": 1}, {tp: 2}, {tp: frozenset({"y"})})
    assert driver.machine.metadata_changed(fewer, driver.now) == ()
    moved = Layout({"t": 1}, {tp: 2}, {tp: frozenset({"x", "y"})})
    driver.feed(driver.machine.metadata_changed(moved, driver.now))
    assert driver.kinds() == ([] if rack is None else ["SendJoin"])


def test_a_follower_does_not_care() -> None:
    driver = Driver().stable()
    assert driver.machine.metadata_changed(Layout({"t": 30}), driver.now) == ()


def test_an_eager_assignor_may_move_what_it_likes() -> None:
    driver = eager().leading()
    assert driver.state is ClassicState.SYNCING
    assert len(driver.one(fx.SendSync).assignments) == 1


def test_a_bad_assignor_is_an_error() -> None:
    class Broken(type(COOPERATIVE)):  # type: ignore[misc]  # an assignor's class
        name = "broken"

        def assign(self, layout: Layout, members: Any) -> Any:
            if "greedy" in layout.counts:
                return {"me": tps(0), "you": ()}
            raise ZeroDivisionError("oops")

    for topics, text in ((T, "oops"), (frozenset({"greedy"}), "released them")):
        driver = Driver(assignors=(Broken(),))
        driver.subscribe(topics)
        owner = driver.member("you", topics=topics, owned=tps(0))
        me = driver.member("me", topics=topics)
        driver.joined(leader="me", members=[me, owner])
        ticket = driver.one(fx.ResolveTopics).ticket
        counts = dict.fromkeys(topics, 1)
        driver.feed(driver.machine.topics_resolved(ticket, Layout(counts), driver.now))
        error = driver.one(fx.Fail).error
        assert isinstance(error, MembershipError)
        assert text in str(error)


# ---- the user


def test_the_same_subscription_changes_nothing() -> None:
    driver = Driver().stable()
    assert driver.machine.topics == T
    assert driver.subscribe() == []


def test_a_new_topic_joins_again_and_keeps_the_others() -> None:
    driver = Driver().stable()
    driver.subscribe(frozenset({"t", "u"}))
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.topics == {"t", "u"}
    assert said.owned == tps(0, 1)


def test_a_dropped_topic_is_released_before_the_join() -> None:
    driver = Driver().stable()
    driver.subscribe(frozenset({"u"}))
    assert driver.state is ClassicState.PREPARING
    driver.step()
    # Changing one's mind meanwhile is fine.
    assert driver.feed(driver.machine.subscribe(frozenset({"v"}), driver.now)) == []
    claims = (driver.machine.ledger.numbers,)
    assert claims
    driver.feed(
        driver.machine.revoke_ended(
            tuple(fx.Claim(tp, n) for tp, n in driver.machine.ledger.numbers.items()),
            driver.now,
            in_time=True,
        )
    )
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.topics == {"v"}
    assert said.owned == frozenset()


def test_a_change_while_joining_is_sent_after_it() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    assert driver.subscribe(frozenset({"t", "u"})) == []
    driver.joined(ticket=join.ticket)
    driver.synced(tps(0))
    assert driver.kinds() == ["Assign", "SendJoin"]
    # And an assignment of what is not wanted any more is not taken at all.
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    driver.subscribe(frozenset({"u"}))
    driver.joined(ticket=join.ticket)
    driver.synced(tps(0))
    assert driver.kinds() == ["SendJoin"]
    assert driver.machine.ledger.owned == frozenset()


def test_unsubscribed_it_releases_everything_and_leaves() -> None:
    driver = Driver().stable()
    driver.feed(driver.machine.unsubscribe(driver.now))
    assert driver.kinds() == ["RequestRevoke", "Revoke"]
    assert driver.machine.unsubscribe(driver.now) == ()
    driver.revoked()
    assert driver.one(fx.SendLeave).member_id == "me"
    assert driver.state is ClassicState.UNJOINED
    assert driver.machine.next_deadline() is None
    assert driver.machine.generation == -1
    driver.subscribe()
    assert driver.one(fx.SendJoin).member_id == ""


def test_subscribed_again_before_it_was_gone() -> None:
    driver = Driver().stable()
    driver.feed(driver.machine.unsubscribe(driver.now))
    claims = driver.one(fx.Revoke).claims
    driver.subscribe(frozenset({"u"}))
    driver.feed(driver.machine.revoke_ended(claims, driver.now, in_time=True))
    assert driver.kinds() == ["SendLeave", "SendJoin"]


def test_an_enforced_rebalance_says_why() -> None:
    driver = Driver()
    assert driver.feed(driver.machine.enforce_rebalance("x", driver.now)) == []
    driver.stable()
    driver.feed(driver.machine.enforce_rebalance("why" * 200, driver.now))
    assert driver.one(fx.SendJoin).reason == ("why" * 200)[:255]


def test_who_does_not_poll_leaves_and_comes_back_with_the_next_poll() -> None:
    driver = Driver().stable()
    driver.wait(3.0)
    while driver.state is ClassicState.STABLE:
        driver.beat()
        due = driver.machine.next_deadline()
        assert due is not None
        driver.wait(due - driver.now)
    assert driver.now == pytest.approx(160.0)
    assert driver.kinds() == ["SendLeave", "Lose"]
    assert driver.state is ClassicState.STALLED
    assert driver.machine.next_deadline() is None
    assert driver.wait(1000.0) == []
    driver.feed(driver.machine.polled(driver.now))
    assert driver.one(fx.SendJoin).member_id == ""


def test_a_poll_keeps_it_in() -> None:
    driver = Driver().stable()
    driver.now += 59.0
    assert driver.machine.polled(driver.now) == ()
    driver.wait(2.0)
    assert driver.state is ClassicState.STABLE


def test_a_parked_join_outlives_the_polls() -> None:
    driver = Driver()
    join = driver.subscribe()[0]
    assert isinstance(join, fx.SendJoin)
    driver.wait(61.0)
    assert driver.kinds() == ["SendProbe"]
    assert driver.state is ClassicState.JOINING
    driver.joined(ticket=join.ticket)
    driver.synced(tps(0))
    driver.wait(0.0)
    assert driver.state is ClassicState.STALLED


def test_a_static_member_that_does_not_poll_falls_silent() -> None:
    driver = Driver(group_instance_id="i").stable()
    assert driver.wait(61.0) == []
    assert driver.machine.next_deadline() is None
    assert driver.state is ClassicState.STABLE
    driver.feed(driver.machine.polled(driver.now))
    assert driver.kinds() == ["SendHeartbeat"]


# ---- the end


def test_closing_releases_everything_and_leaves() -> None:
    driver = Driver().stable()
    driver.feed(driver.machine.close(driver.now))
    assert driver.kinds() == ["RequestRevoke", "Revoke"]
    claims = driver.one(fx.Revoke).claims
    driver.wait(3.0)
    assert driver.kinds() == ["SendHeartbeat"]
    driver.feed(driver.machine.revoke_ended(claims, driver.now, in_time=True))
    leave = driver.one(fx.SendLeave)
    assert leave.reason == "the consumer is being closed"
    assert driver.wait(9.0) == []
    driver.feed(driver.machine.leave_ended(leave.ticket, driver.now))
    assert driver.state is ClassicState.LEFT


def test_leaving_in_a_hurry_waits_for_no_hold() -> None:
    driver = Driver().stable()
    held = driver.machine.ledger.hold(driver.machine.ledger.claims(tps(0)))
    driver.feed(driver.machine.close(driver.now))
    assert driver.one(fx.Revoke).partitions == tps(1)
    driver.feed(driver.machine.lose_all(driver.now))
    assert driver.one(fx.Lose).partitions == tps(0, 1)
    assert "SendLeave" in driver.kinds()
    assert driver.machine.lose_all(driver.now) == ()
    assert driver.machine.unhold(held, driver.now) == ()


def test_a_hold_keeps_a_revoke_and_its_end_lets_it_go() -> None:
    driver = Driver()
    shrink(driver, tps(0))
    held = driver.machine.ledger.hold(driver.machine.ledger.claims(tps(1, 2)))
    assert driver.step() == []
    driver.feed(driver.machine.unhold(held[:1], driver.now))
    assert driver.one(fx.Revoke).partitions == {held[0].partition}
    driver.revoked()
    driver.feed(driver.machine.unhold(held[1:], driver.now))
    driver.revoked()
    assert driver.kinds() == ["SendJoin"]  # one for both


def test_a_leave_that_fails_is_good_enough() -> None:
    driver = Driver().stable(frozenset())
    driver.feed(driver.machine.close(driver.now))
    driver.failed(driver.one(fx.SendLeave).ticket)
    assert driver.state is ClassicState.LEFT


def test_a_heartbeat_that_outlives_the_member_says_nothing() -> None:
    driver = Driver(group_instance_id="i").stable(frozenset())
    driver.wait(3.0)
    ticket = driver.one(fx.SendHeartbeat).ticket
    driver.feed(driver.machine.close(driver.now))
    assert driver.state is ClassicState.LEFT
    code = E.REBALANCE_IN_PROGRESS
    assert driver.machine.heartbeat_answered(ticket, code, driver.now, 0.5) == ()
    refused = driver.machine.commit_refused(
        E.UNKNOWN_MEMBER_ID, ("me", 1), driver.now, 0.5
    )
    assert refused == ()


def test_nobody_leaves_who_was_not_in() -> None:
    driver = Driver()
    driver.feed(driver.machine.close(driver.now))
    assert driver.out == []
    assert driver.state is ClassicState.LEFT


def leaving_unnamed() -> tuple[Driver, int]:
    """A member that closes before its first JoinGroup was answered."""
    driver = Driver()
    driver.subscribe()
    ticket = driver.one(fx.SendJoin).ticket
    driver.feed(driver.machine.close(driver.now))
    assert driver.out == []
    assert driver.state is ClassicState.LEAVING
    return driver, ticket


@pytest.mark.parametrize("code", [E.MEMBER_ID_REQUIRED, E.NONE])
def test_who_leaves_before_it_has_a_member_id_leaves_by_the_one_given(
    code: int,
) -> None:
    driver, join = leaving_unnamed()
    assert driver.machine.awaits(join)
    driver.joined(ticket=join, error_code=code, member_id="given")
    leave = driver.one(fx.SendLeave)
    assert leave.member_id == "given"
    assert driver.kinds() == ["SendLeave"]
    driver.feed(driver.machine.leave_ended(leave.ticket, driver.now))
    assert driver.state is ClassicState.LEFT


def test_who_leaves_does_not_wait_for_a_member_id_that_does_not_come() -> None:
    driver, join = leaving_unnamed()
    driver.failed(join)
    assert driver.state is ClassicState.LEFT
    driver, join = leaving_unnamed()
    driver.joined(ticket=join, error_code=E.GROUP_AUTHORIZATION_FAILED, member_id="")
    assert driver.state is ClassicState.LEFT
    driver, join = leaving_unnamed()
    due = driver.machine.next_deadline()
    assert due == driver.now + 2.0
    driver.wait(2.0)
    assert driver.state is ClassicState.LEFT


def test_who_unsubscribes_before_it_has_a_member_id_gives_it_back() -> None:
    driver = Driver()
    driver.subscribe()
    ticket = driver.one(fx.SendJoin).ticket
    driver.feed(driver.machine.unsubscribe(driver.now))
    assert driver.state is ClassicState.UNJOINED
    driver.refused(E.MEMBER_ID_REQUIRED, ticket=ticket, member_id="given")
    assert driver.one(fx.SendLeave).member_id == "given"
    assert driver.machine.member_id == ""
    assert driver.state is ClassicState.UNJOINED


def test_who_unsubscribes_and_is_given_no_member_id_has_nothing_to_give_back() -> None:
    driver = Driver()
    driver.subscribe()
    ticket = driver.one(fx.SendJoin).ticket
    driver.feed(driver.machine.unsubscribe(driver.now))
    driver.refused(E.GROUP_AUTHORIZATION_FAILED, ticket=ticket, member_id="")
    assert driver.out == []
    assert driver.state is ClassicState.UNJOINED


def test_a_static_member_does_not_leave() -> None:
    driver = Driver(group_instance_id="i").stable(frozenset())
    driver.feed(driver.machine.close(driver.now))
    assert driver.out == []
    assert driver.state is ClassicState.LEFT
    driver = Driver(group_instance_id="i")
    driver.subscribe()
    driver.feed(driver.machine.close(driver.now))
    assert driver.out == []
    assert driver.state is ClassicState.LEFT


@pytest.mark.parametrize(
    "code", [E.UNKNOWN_MEMBER_ID, E.INVALID_GROUP_ID, E.REBALANCE_IN_PROGRESS]
)
def test_bad_news_while_closing(code: E) -> None:
    driver = Driver().stable()
    driver.feed(driver.machine.close(driver.now))
    claims = driver.one(fx.Revoke).claims
    driver.wait(3.0)
    driver.beat(code)
    if code == E.REBALANCE_IN_PROGRESS:
        assert driver.state is ClassicState.LEAVING
        driver.feed(driver.machine.revoke_ended(claims, driver.now, in_time=True))
        assert driver.kinds() == ["SendLeave"]
    else:
        assert driver.kinds() == ["Lose"]
        assert driver.state is ClassicState.LEFT


# ---- commits


def test_a_refused_commit_tells_of_the_member() -> None:
    driver = Driver().stable()
    refuse = driver.machine.commit_refused
    stale = refuse(E.UNKNOWN_MEMBER_ID, ("me", 0), driver.now, 0.5)
    assert stale == ()
    assert refuse(E.REBALANCE_IN_PROGRESS, ("me", 1), driver.now, 0.5) == ()
    driver.feed(refuse(E.ILLEGAL_GENERATION, ("me", 1), driver.now, 0.5))
    assert driver.kinds() == ["Lose", "SendJoin"]
    assert refuse(E.ILLEGAL_GENERATION, ("me", -1), driver.now, 0.5) == ()
    driver = Driver(group_instance_id="i").stable()
    driver.feed(
        driver.machine.commit_refused(E.FENCED_INSTANCE_ID, ("me", 1), driver.now, 0.5)
    )
    assert driver.kinds() == ["Lose", "Fail"]


def test_the_rack_and_the_assignors_data_are_sent() -> None:
    driver = Driver(rack="r1")
    driver.subscribe()
    said = decode_subscription(driver.one(fx.SendJoin).protocols[0][1])
    assert said.rack == "r1"
    assert said.user_data == b"\xff\xff\xff\xff"


# ---- partitions that are given to nobody


def sent_withheld(driver: Driver) -> frozenset[TopicPartition]:
    return decode_subscription(driver.one(fx.SendJoin).protocols[0][1]).withheld


def shared(
    driver: Driver,
    share: frozenset[TopicPartition],
    free: frozenset[TopicPartition] | None,
) -> None:
    driver.synced(assignment=encode_assignment(share, free))


def test_what_is_to_be_withheld_is_sent_by_joining_again() -> None:
    driver = Driver().stable()
    driver.feed(driver.machine.withhold(tps(1, 2), driver.now))
    assert sent_withheld(driver) == tps(1, 2)
    assert driver.one(fx.SendJoin).reason == "partitions are being rewound"
    assert driver.feed(driver.machine.withhold(tps(1, 2), driver.now)) == []
    assert driver.machine.free == {}
    assert not driver.machine.ignores_withholding


def test_what_is_free_is_free_for_one_generation() -> None:
    driver = Driver().stable(tps(0))
    driver.feed(driver.machine.withhold(tps(1, 2), driver.now))
    driver.joined()
    shared(driver, tps(0), tps(1, 3))
    assert driver.machine.free == {TopicPartition("t", 1): -3}
    assert not driver.machine.ignores_withholding
    driver.feed(driver.machine.enforce_rebalance("why", driver.now))
    assert driver.machine.free == {}
    assert sent_withheld(driver) == tps(1, 2)
    driver.joined()
    shared(driver, tps(0), tps(1, 2))
    assert driver.machine.free == dict.fromkeys(tps(1, 2), -4)
    driver.feed(driver.machine.withhold(frozenset(), driver.now))
    assert driver.machine.free == {}
    assert sent_withheld(driver) == frozenset()
    driver.joined()
    driver.synced(tps(0, 1))
    assert driver.one(fx.Assign).added == tps(1)
    assert not driver.machine.ignores_withholding


def test_nothing_is_free_for_who_is_no_member_any_more() -> None:
    driver = Driver().stable(tps(0))
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    driver.joined()
    shared(driver, tps(0), tps(1))
    driver.wait(3.0)
    driver.beat(E.UNKNOWN_MEMBER_ID)
    assert driver.machine.free == {}
    assert sent_withheld(driver) == tps(1)


def test_a_leader_of_another_client_ignores_withholding() -> None:
    driver = Driver().stable(tps(0))
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    driver.joined()
    driver.synced(tps(0))
    assert driver.machine.ignores_withholding
    assert driver.machine.free == {}
    driver.feed(driver.machine.withhold(tps(1, 2), driver.now))
    assert not driver.machine.ignores_withholding


def test_what_is_withheld_during_a_rebalance_makes_another() -> None:
    driver = Driver()
    driver.subscribe()
    join = driver.one(fx.SendJoin)
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    assert driver.out == []
    driver.joined(ticket=join.ticket)
    driver.synced(tps(0))
    # That leader had not been asked yet.
    assert not driver.machine.ignores_withholding
    assert sent_withheld(driver) == tps(1)


def test_an_eager_member_gives_all_up_before_it_asks() -> None:
    driver = eager().stable(tps(0, 1))
    driver.feed(driver.machine.withhold(tps(1), driver.now))
    assert driver.one(fx.RequestRevoke).partitions == tps(0, 1)
    driver.feed(driver.machine.release(tps(0, 1), driver.now))
    driver.revoked()
    assert sent_withheld(driver) == tps(1)


def test_who_has_left_withholds_nothing() -> None:
    driver = Driver()
    driver.feed(driver.machine.close(driver.now))
    assert driver.feed(driver.machine.withhold(tps(1), driver.now)) == []


def test_a_leader_withholds_from_all_and_says_what_is_free() -> None:
    driver = Driver()
    driver.subscribe()
    driver.joined(
        leader="me",
        members=[
            driver.member("me", owned=tps(0, 1), generation=1),
            driver.member("you", owned=tps(2), generation=1, withheld=tps(1, 3)),
            driver.member("they", withheld=tps(0)),
        ],
    )
    ticket = driver.one(fx.ResolveTopics).ticket
    driver.feed(driver.machine.topics_resolved(ticket, Layout({"t": 4}), driver.now))
    shares = dict(driver.one(fx.SendSync).assignments)
    given = [decode_assignment(blob) for blob in shares.values()]
    assert frozenset().union(*given) == tps(2)
    assert {member: decode_free(blob) for member, blob in shares.items()} == {
        "me": None,
        "you": tps(3),
        "they": frozenset(),
    }


def test_no_answer_renames_a_member() -> None:
    driver = Driver().stable(tps(0))
    driver.feed(driver.machine.enforce_rebalance("", driver.now))
    driver.joined(member_id="nobody")
    assert isinstance(driver.one(fx.ReportError).error, ProtocolError)
    assert driver.machine.member_id == "me"
    driver.wait(1)
    assert driver.one(fx.SendJoin).member_id == "me"
    driver.joined()
    driver.synced(tps(0))
    assert driver.state is ClassicState.STABLE
