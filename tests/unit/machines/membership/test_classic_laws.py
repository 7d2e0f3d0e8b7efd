"""Laws of a member that hold in whatever order things happen to it."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.assignors import ASSIGNORS
from kafkaio._machines.membership.classic.membership import (
    ClassicMemberConfig,
    ClassicMembership,
)
from kafkaio._machines.membership.classic.states import (
    BLOCKED,
    HEARTBEATING,
    ClassicState,
)
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.subscription import (
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkaio.errors import ConnectionLost
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import TopicPartition

TOPICS = st.sampled_from([frozenset("tu"), frozenset("t"), frozenset("u")])
SHARES = st.frozensets(
    st.builds(TopicPartition, st.sampled_from("tu"), st.integers(0, 2))
)
CODES = st.sampled_from(
    [
        E.NONE,
        E.NONE,
        E.NONE,
        E.REBALANCE_IN_PROGRESS,
        E.ILLEGAL_GENERATION,
        E.UNKNOWN_MEMBER_ID,
        E.NOT_COORDINATOR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    ]
)
ROLLS = st.floats(0, 0.999)


class Laws(RuleBasedStateMachine):
    @initialize(
        eager=st.booleans(),
        static=st.booleans(),
        matches=st.booleans(),
        share=SHARES,
    )
    def begin(
        self,
        share: frozenset[TopicPartition],
        *,
        eager: bool,
        static: bool,
        matches: bool,
    ) -> None:
        names = ["range"] if eager else ["cooperative-sticky"]
        self.eager = eager
        self.machine = ClassicMembership(
            ClassicMemberConfig(
                group_id="g",
                assignors=tuple(ASSIGNORS[name] for name in names),
                session=10.0,
                interval=3.0,
                rebalance=40.0,
                group_instance_id="i" if static else None,
            )
        )
        self.machine.matches_on_client = matches
        self.now = 0.0
        self.generation = 0
        self.requests: list[fx.Effect] = []
        self.revokes: list[fx.Revoke] = []
        self.owned: set[TopicPartition] = set()
        self.asked: dict[TopicPartition, bool] = {}
        self.ended = 0
        self.holds: list[Claim] = []
        self.withheld = frozenset[TopicPartition]()
        self.take(self.machine.subscribe(frozenset("tu"), self.now))
        self.cooperate(share)

    def cooperate(self, share: frozenset[TopicPartition]) -> None:
        """The coordinator answers as one would like it to."""
        for _ in range(5):
            if self.requests and not isinstance(self.requests[-1], fx.SendLeave):
                self.reply(self.requests.pop(), E.NONE, share, leads=False, roll=0.5)

    @rule(share=SHARES)
    def rebalance(self, share: frozenset[TopicPartition]) -> None:
        due = self.machine.next_deadline()
        self.now = self.now if due is None else max(self.now, due)
        self.tick()
        if self.requests and isinstance(self.requests[-1], fx.SendHeartbeat):
            beat, code = self.requests.pop(), E.REBALANCE_IN_PROGRESS
            self.reply(beat, code, share, leads=False, roll=0.5)
        self.cooperate(share)

    def take(self, effects: tuple[fx.Effect, ...]) -> None:  # noqa: C901, PLR0912, PLR0915
        parting = frozenset[TopicPartition]()
        for effect in effects:
            assert not self.ended
            match effect:
                case fx.RequestRevoke(partitions, deadline, is_leaving):
                    assert partitions <= self.owned
                    assert not partitions & self.asked.keys()
                    assert deadline < self.now + 40.0
                    self.asked |= dict.fromkeys(partitions, is_leaving)
                    if is_leaving:
                        parting |= partitions
                case fx.Revoke():
                    # Asked for first, and then stepped over by the user.
                    assert all(self.asked[tp] for tp in effect.partitions)
                    assert not set(effect.claims) & set(self.holds)
                    self.revokes.append(effect)
                case fx.Assign(added, owned):
                    assert not added & self.owned
                    self.owned |= added
                    assert owned == self.owned
                case fx.Lose(partitions):
                    assert partitions <= self.owned
                    self.drop(partitions)
                case fx.SendJoin():
                    said = decode_subscription(effect.protocols[0][1])
                    assert said.owned == self.owned
                    if self.eager:
                        assert not self.owned
                    self.requests.append(effect)
                case fx.SendHeartbeat():
                    assert effect.timeout > 0
                    self.requests.append(effect)
                case fx.SendProbe():
                    assert 0 < effect.timeout < 10.0 - 3.0
                    self.requests.append(effect)
                case fx.RefreshTopics():
                    assert self.machine.matches_on_client
                    assert 0 < effect.timeout < 10.0
                    self.requests.append(effect)
                case fx.SendSync() | fx.ResolveTopics() | fx.SendLeave():
                    self.requests.append(effect)
                case fx.Fail():
                    self.ended = 1
                case fx.ForgetCoordinator():
                    pass
        if parting:
            self.take(self.machine.release(parting, self.now))

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        self.owned -= partitions
        for tp in partitions:
            self.asked.pop(tp, None)

    @rule(topics=TOPICS)
    def subscribe(self, topics: frozenset[str]) -> None:
        self.take(self.machine.subscribe(topics, self.now))

    @rule(often=st.integers(0, 4))
    def unsubscribe(self, often: int) -> None:
        if often:
            return
        if self.machine.topics is not None:
            self.release_all()
        self.take(self.machine.unsubscribe(self.now))

    def release_all(self) -> None:
        # Who unsubscribes or closes waits for no further step of his own.
        self.asked = dict.fromkeys(self.asked, True)

    @rule(often=st.integers(0, 9))
    def close(self, often: int) -> None:
        if often == 0:
            self.release_all()  # also what was delayed after the consumer unsubscribed
            self.take(self.machine.close(self.now))

    @rule()
    def step(self) -> None:
        self.machine.ledger.report()
        self.asked |= dict.fromkeys(self.asked, True)
        self.take(self.machine.step_taken(self.now))

    @rule(partitions=SHARES)
    def delay(self, partitions: frozenset[TopicPartition]) -> None:
        late = self.machine.ledger.delay(partitions)
        self.asked |= {tp: False for tp in partitions - late if tp in self.asked}

    @rule(partitions=SHARES)
    def hold(self, partitions: frozenset[TopicPartition]) -> None:
        self.holds += self.machine.ledger.hold(self.machine.ledger.claims(partitions))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def unhold(self, data: st.DataObject) -> None:
        claim = self.holds.pop(data.draw(st.integers(0, len(self.holds) - 1)))
        self.take(self.machine.unhold([claim], self.now))

    @rule(partitions=SHARES)
    def idle(self, partitions: frozenset[TopicPartition]) -> None:
        self.asked |= {tp: True for tp in partitions if tp in self.asked}
        self.take(self.machine.release(partitions, self.now))

    @rule(counts=st.fixed_dictionaries({"t": st.integers(0, 3)}))
    def metadata(self, counts: dict[str, int]) -> None:
        self.take(self.machine.metadata_changed(Layout(counts), self.now))

    @rule()
    def poll(self) -> None:
        self.take(self.machine.polled(self.now))

    @rule()
    def enforce(self) -> None:
        self.take(self.machine.enforce_rebalance("why", self.now))

    @rule(partitions=SHARES)
    def withhold(self, partitions: frozenset[TopicPartition]) -> None:
        self.withheld = partitions
        self.take(self.machine.withhold(partitions, self.now))

    @precondition(lambda self: self.revokes)
    @rule(in_time=st.booleans())
    def revoked(self, *, in_time: bool) -> None:
        revoke = self.revokes.pop(0)
        numbers = self.machine.ledger.numbers
        current = frozenset(tp for tp, n in revoke.claims if numbers.get(tp) == n)
        if in_time:
            self.drop(current)
        self.take(self.machine.revoke_ended(revoke.claims, self.now, in_time=in_time))
        assert not current & self.machine.ledger.owned

    @rule(share=st.floats(0, 1))
    def pass_time(self, share: float) -> None:
        due = self.machine.next_deadline()
        self.now = (
            self.now + 1.0
            if due is None
            else max(
                self.now, self.now + (due - self.now) * (1.0 if share > 0.3 else share)
            )
        )
        self.tick()

    def tick(self) -> None:
        self.take(self.machine.tick(self.now))
        due = self.machine.next_deadline()
        # What was due has been done: otherwise the loop around it would spin.
        assert due is None or due > self.now

    @precondition(lambda self: self.requests)
    @rule(
        data=st.data(),
        code=CODES,
        share=SHARES,
        leads=st.booleans(),
        roll=ROLLS,
    )
    def answer(
        self,
        data: st.DataObject,
        code: int,
        share: frozenset[TopicPartition],
        *,
        leads: bool,
        roll: float,
    ) -> None:
        place = data.draw(st.integers(0, len(self.requests) - 1))
        self.reply(self.requests.pop(place), code, share, leads=leads, roll=roll)

    def reply(
        self,
        request: fx.Effect,
        code: E,
        share: frozenset[TopicPartition],
        *,
        leads: bool,
        roll: float,
    ) -> None:
        machine, now = self.machine, self.now
        match request:
            case fx.SendJoin():
                self.generation += 1
                me = encode_subscription(Subscription(topics=frozenset({"t"})))
                reply = JoinGroupResponse(
                    error_code=code,
                    generation_id=self.generation,
                    protocol_name=machine.config.assignors[0].name,
                    member_id="me",
                    leader="me" if leads else "you",
                    members=[JoinGroupResponseMember(member_id="me", metadata=me)],
                )
                self.take(machine.join_answered(request.ticket, reply, now, roll))
            case fx.SendSync():
                self.take(
                    machine.sync_answered(
                        request.ticket,
                        SyncGroupResponse(
                            error_code=code,
                            assignment=encode_assignment(
                                share, share if leads else None
                            ),
                        ),
                        now,
                        roll,
                    )
                )
            case fx.SendHeartbeat():
                self.take(machine.heartbeat_answered(request.ticket, code, now, roll))
            case fx.ResolveTopics():
                self.take(
                    machine.topics_resolved(request.ticket, Layout({"t": 2}), now)
                )
            case fx.RefreshTopics():
                self.take(machine.topics_refreshed(request.ticket, now))
            case fx.SendLeave():
                self.take(machine.leave_ended(request.ticket, now))
            case fx.SendProbe():
                ended = machine.probe_ended(
                    request.ticket, now, roll, is_silent=code != E.NONE
                )
                self.take(ended)

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), roll=ROLLS)
    def fail(self, data: st.DataObject, roll: float) -> None:
        place = data.draw(st.integers(0, len(self.requests) - 1))
        request = self.requests[place]
        if isinstance(request, fx.SendJoin | fx.SendSync | fx.SendHeartbeat):
            del self.requests[place]
            self.take(
                self.machine.request_failed(
                    request.ticket, ConnectionLost("x"), self.now, roll
                )
            )

    @invariant()
    def holds(self) -> None:
        machine = self.machine
        assert machine.ledger.owned == self.owned
        assert machine.ledger.pending == self.asked.keys()
        beats = machine.state in HEARTBEATING and machine.generation >= 0
        if beats and not machine.has_ended and not machine._is_silent:
            due = machine.next_deadline()
            if machine._closing_ticket == 0:
                # Never later than the interval, or than the session if one is out.
                assert due is not None
                limit = 10.0 if machine._heartbeat.in_flight else 3.0
                assert due <= self.now + limit
        if machine.state in BLOCKED and machine._ticket:
            # What is parked never goes unwatched.
            due = machine.next_deadline()
            watched = due is not None and due <= self.now + 3.0
            assert watched or machine._probe_timer.in_flight
        if machine.state in {
            ClassicState.UNJOINED,
            ClassicState.STALLED,
            ClassicState.LEFT,
            ClassicState.FATAL,
        }:
            assert not self.owned
        assert machine.free.keys() <= self.withheld
        if machine.generation < 0 or machine._ticket:
            assert not machine.free
        if machine.state is ClassicState.STABLE:
            assert not self.asked
            if not machine.ignores_withholding and self.withheld:
                assert machine._sent_withheld == self.withheld
        if machine.state is ClassicState.JOINING and self.eager:
            assert not self.owned


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=150, stateful_step_count=40)
