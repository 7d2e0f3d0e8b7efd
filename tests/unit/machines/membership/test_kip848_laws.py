"""A member and its coordinator, in whatever order things happen between them.

The coordinator is Kafka's, reduced to one member: it gives and takes as it likes, holds
the member's old epoch till everything taken is acknowledged, and fences whoever says
what cannot be. Requests and answers may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

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
from kafkaio._machines.membership.kip848.membership import (
    Kip848MemberConfig,
    Kip848Membership,
)
from kafkaio._machines.membership.kip848.states import Kip848State
from kafkaio._machines.membership.ledger import Stage
from kafkaio.errors import ConnectionLost
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafkaio.types import TopicPartition

Slots = frozenset[tuple[UUID, int]]
IDS = {UUID(int=1): "t", UUID(int=2): "u"}
NONE: Slots = frozenset()
SHARES = st.frozensets(st.tuples(st.sampled_from(list(IDS)), st.integers(0, 2)))
ROLLS = st.floats(0, 0.999)
FATES = st.sampled_from(["fine", "fine", "fine", "unheard", "lost"])
INTERVAL, REBALANCE = 5.0, 60.0


@dataclass
class Coordinator:
    """What the broker knows of the one member."""

    is_known: bool = False
    epoch: int = 0
    previous: int = 0
    group: int = 1
    target: Slots = NONE
    assigned: Slots = NONE
    revoking: Slots = NONE
    fenced: list[E] = field(default_factory=list)

    def move(self, target: Slots) -> None:
        self.target = target
        self.group += 1

    def forget(self) -> None:
        self.is_known = False
        self.assigned = self.revoking = NONE

    def heartbeat(
        self, beat: fx.SendConsumerGroupHeartbeat
    ) -> ConsumerGroupHeartbeatResponse:
        if beat.member_epoch < 0:
            self.forget()
            return ConsumerGroupHeartbeatResponse(member_epoch=beat.member_epoch)
        if beat.member_epoch == 0:
            assert beat.owned == NONE
            assert beat.names is not None
            assert beat.rebalance == REBALANCE
            self.is_known, self.assigned, self.revoking = True, self.target, NONE
            self._advance_to(self.group)
            return self._reply(shows=True)
        if not self.is_known:
            return ConsumerGroupHeartbeatResponse(error_code=E.UNKNOWN_MEMBER_ID)
        is_old = (
            beat.member_epoch == self.previous
            and beat.owned is not None
            and beat.owned <= self.assigned
        )
        if beat.member_epoch != self.epoch and not is_old:
            self.fenced.append(E.FENCED_MEMBER_EPOCH)
            self.forget()
            return ConsumerGroupHeartbeatResponse(error_code=E.FENCED_MEMBER_EPOCH)
        before = self.assigned
        self._reconcile(beat.owned)
        return self._reply(shows=beat.rebalance is not None or self.assigned != before)

    def _reconcile(self, owned: Slots | None) -> None:
        if owned is not None and not owned & self.revoking:
            self.revoking = NONE
        if self.revoking or self.epoch == self.group:
            if not self.revoking and self.epoch == self.group:
                self.assigned = self.target
            return
        gone = self.assigned - self.target
        # What the member does not report to own, it need not revoke: the answer that
        # assigned it may have been lost.
        if gone and (owned is None or owned & gone):
            self.assigned, self.revoking = self.assigned - gone, gone
            return
        self.assigned = self.target
        self._advance_to(self.group)

    def _advance_to(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.previous, self.epoch = self.epoch, epoch

    def _reply(self, *, shows: bool) -> ConsumerGroupHeartbeatResponse:
        reply = ConsumerGroupHeartbeatResponse(
            member_id="me",
            member_epoch=self.epoch,
            heartbeat_interval_ms=round(INTERVAL * 1000),
        )
        if shows:
            reply.assignment = Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=topic_id, partitions=[number]
                    )
                    for topic_id, number in sorted(self.assigned)
                ]
            )
        return reply


class Laws(RuleBasedStateMachine):
    @initialize(share=SHARES)
    def begin(self, share: Slots) -> None:
        self.machine = Kip848Membership(
            Kip848MemberConfig(group_id="g", member_id="me", rebalance=REBALANCE)
        )
        self.broker = Coordinator(target=share)
        self.now = 0.0
        self.beats: list[fx.SendConsumerGroupHeartbeat] = []
        self.revokes: list[fx.Revoke] = []
        self.lookups = 0
        self.owned: set[TopicPartition] = set()
        self.asked: set[TopicPartition] = set()
        self.is_broker_silent = False
        self.take(self.machine.subscribe(frozenset("tu"), self.now))

    def take(self, effects: tuple[fx.Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case fx.SendConsumerGroupHeartbeat():
                    self.beats.append(effect)
                case fx.NameTopics():
                    self.lookups += 1
                case fx.RequestRevoke(partitions, deadline, is_leaving):
                    assert partitions <= self.owned
                    assert not partitions & self.asked
                    assert deadline <= self.now + REBALANCE
                    self.asked |= partitions
                    if is_leaving:
                        self.take(self.machine.release(partitions, self.now))
                case fx.Revoke():
                    assert effect.partitions <= self.asked
                    self.revokes.append(effect)
                case fx.Assign(added, owned):
                    assert not added & self.owned
                    self.owned |= added
                    assert owned == self.owned
                case fx.Lose(partitions):
                    self.drop(partitions)
                case fx.ForgetCoordinator():
                    pass
                case _:
                    raise AssertionError(effect)

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        assert partitions <= self.owned
        self.owned -= partitions
        self.asked -= partitions

    # ---- what happens ----------------------------------------------------------------

    @rule(roll=ROLLS, fate=FATES)
    @precondition(lambda self: bool(self.beats))
    def travel(self, roll: float, fate: str) -> None:
        # A broker remembers one epoch back, so it forgives one answer lost, not two.
        if fate == "lost" and self.is_broker_silent:
            fate = "unheard"
        self.is_broker_silent = fate == "lost" or (
            self.is_broker_silent and fate == "unheard"
        )
        beat = self.beats.pop(0)
        reply = None if fate == "unheard" else self.broker.heartbeat(beat)
        if reply is None or fate == "lost":
            error = ConnectionLost("x")
            self.take(self.machine.request_failed(beat.ticket, error, self.now, roll))
        elif beat.is_leave:
            self.take(self.machine.leave_ended(beat.ticket, self.now))
        else:
            self.take(
                self.machine.heartbeat_answered(beat.ticket, reply, self.now, roll)
            )

    @rule(fate=FATES)
    def converse(self, fate: str) -> None:
        """The next heartbeat, when it is due."""
        self.pass_time(self.machine.next_deadline() or self.now)
        if self.beats:
            self.travel(0.5, fate)

    @rule(fates=st.lists(FATES, min_size=1, max_size=3), share=SHARES)
    def divide_anew(self, fates: list[str], share: Slots) -> None:
        self.broker.move(share)
        for fate in fates:
            self.converse(fate)

    @rule(seconds=st.floats(0.1, 9))
    def wait(self, seconds: float) -> None:
        self.pass_time(self.now + seconds)

    def pass_time(self, until: float) -> None:
        self.now = max(self.now, until)
        self.take(self.machine.polled(self.now))
        self.take(self.machine.tick(self.now))

    @rule(found=st.sets(st.sampled_from(list(IDS))), roll=ROLLS)
    @precondition(lambda self: self.lookups > 0)
    def name(self, found: set[UUID], roll: float) -> None:
        self.lookups -= 1
        names = {topic_id: IDS[topic_id] for topic_id in found}
        self.take(self.machine.topics_named(names, self.now, roll))

    @rule()
    def step(self) -> None:
        self.take(self.machine.release(self.machine.ledger.pending, self.now))

    @rule()
    @precondition(lambda self: bool(self.revokes))
    def revoked(self) -> None:
        claims = self.revokes.pop().claims
        numbers = self.machine.ledger.numbers
        self.drop(frozenset(tp for tp, n in claims if numbers.get(tp) == n))
        self.take(self.machine.revoke_ended(claims, self.now, in_time=True))

    @rule()
    def the_broker_throws_us_out(self) -> None:
        self.broker.forget()

    @rule()
    def away_and_back(self) -> None:
        self.take(self.machine.unsubscribe(self.now))
        self.take(self.machine.subscribe(frozenset("tu"), self.now))

    @rule(share=SHARES)
    def withhold(self, share: Slots) -> None:
        partitions = frozenset(TopicPartition(IDS[i], n) for i, n in share)
        self.take(self.machine.withhold(partitions, self.now))

    @rule()
    def enforce(self) -> None:
        self.take(self.machine.enforce_rebalance("", self.now))

    # ---- laws ------------------------------------------------------------------------

    @invariant()
    def ledgers_agree(self) -> None:
        assert self.machine.ledger.owned == self.owned
        assert self.machine.ledger.pending == self.asked

    @invariant()
    def one_conversation(self) -> None:
        assert sum(self.machine.awaits(beat.ticket) for beat in self.beats) <= 1

    @invariant()
    def who_is_honest_is_not_fenced(self) -> None:
        assert not self.broker.fenced

    @invariant()
    def nothing_is_held_that_is_not_known_to_be_ours(self) -> None:
        if not self.broker.is_known or self.machine.member_epoch <= 0:
            return
        if self.machine.member_epoch == self.broker.epoch and not self.beats:
            known = self.broker.assigned | self.broker.revoking
            held = {TopicPartition(IDS[i], n) for i, n in known}
            assert self.owned | self.machine.free.keys() <= held

    @invariant()
    def what_is_free_is_in_nobodys_hands(self) -> None:
        assert not self.owned & self.machine.free.keys()
        assert self.machine.free.keys() <= self.machine._withheld

    def teardown(self) -> None:
        """Left alone, both sides agree in the end."""
        self.take(self.machine.withhold(frozenset(), self.now))
        for _ in range(60):
            self.step()
            while self.revokes:
                self.revoked()
            while self.lookups:
                self.lookups -= 1
                self.take(self.machine.topics_named(IDS, self.now, 0.5))
            self.converse("fine")
        assert self.machine.state is Kip848State.STABLE
        wanted = {TopicPartition(IDS[i], n) for i, n in self.broker.target}
        assert self.owned == wanted
        assert not self.broker.revoking
        stages = {self.machine.ledger.stage(tp) for tp in self.owned}
        assert stages <= {Stage.ASSIGNED}


def test_what_a_lost_answer_gave_and_the_next_takes_is_not_revoked() -> None:
    """The coordinator waits for nothing, so the member has nothing to acknowledge."""
    first, second = frozenset({(UUID(int=1), 0)}), frozenset({(UUID(int=1), 1)})
    laws = Laws()
    laws.begin(first)
    laws.converse("fine")
    laws.divide_anew(["fine"], second)
    laws.converse("lost")
    assert laws.broker.assigned == second
    laws.divide_anew(["fine"], NONE)
    assert laws.broker.assigned == laws.broker.revoking == NONE
    assert laws.machine.member_epoch == laws.broker.group
    laws.teardown()


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=60, stateful_step_count=25)
