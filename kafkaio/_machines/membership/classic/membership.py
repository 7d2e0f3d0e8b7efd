"""A member of a classic consumer group (KIP-62, 345, 394, 429) with deferred revoke.

The machine is told what happened and answers with effects. Each input changes what it
concerns, and then `_advance` does whatever is possible by now: begin the revokes that
are ready, join once nothing is in the way, heartbeat. So no order of inputs can get a
member stuck between two states.

Giving a partition up takes three steps. RequestRevoke stops its fetching while its
user finishes; Revoke, after the user's next step or at once where nothing is under
way, commits and calls back; only when that has ended does a JoinGroup go out without
the partition. What passes its deadline is lost instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.classic.leader import Leadership
from kafkaio._machines.membership.classic.member import (
    PROTOCOL_TYPE,
    Member,
    MemberConfig,
)
from kafkaio._machines.membership.classic.states import Event, State
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import NEVER, Effects
from kafkaio._machines.membership.subscription import (
    decode_assignment,
    decode_free,
)
from kafkaio._machines.reactions import Step, reaction
from kafkaio.errors import KafkaError
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import TopicPartition

__all__ = ["PROTOCOL_TYPE", "ClassicMembership", "MemberConfig"]

_STEP_EVENTS: Final = {
    Step.RESET_GENERATION: Event.GENERATION_LOST,
    Step.RESET_MEMBER: Event.MEMBER_LOST,
    Step.REJOIN: Event.REBALANCE_ASKED,
}


class ClassicMembership(Member):
    """One consumer's membership, without clock, dice or sockets.

    Every method that takes ``now`` returns what is to be done, in order.
    """

    PROTOCOL = "classic"

    __slots__ = ()

    # ---- the user --------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], now: float) -> Effects:
        """Read these topics from now on, of which there may be none yet."""
        if self.has_ended or topics == self._topics:
            return ()
        self._topics = topics
        self._poll.polled(now)
        self._reason = "the subscription changed"
        self._fire(Event.SUBSCRIBED, now)
        return self._advance(now)

    def unsubscribe(self, now: float) -> Effects:
        """Read nothing: give everything up, then leave."""
        if self.has_ended or self._topics is None:
            return ()
        self._topics = None
        self._reason = "the consumer unsubscribed"
        self._fire(Event.UNSUBSCRIBED, now)
        return self._advance(now)

    def close(self, now: float) -> Effects:
        """Give everything up, leave, and end."""
        if self.has_ended:
            return ()
        self._topics = None
        self._reason = "the consumer is being closed"
        self._fire(Event.CLOSED, now)
        return self._advance(now)

    def polled(self, now: float) -> Effects:
        """The user is alive."""
        self._poll.polled(now)
        if self._is_silent:
            self._is_silent = False
            self._heartbeat.renew(now)
        elif self.state is State.STALLED:
            self._fire(Event.POLLED, now)
        else:
            return ()  # called for every record, so this is all
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> Effects:
        """Join again without need (KIP-568), unless that is under way already."""
        if self.state in {State.STABLE, State.RELEASING}:
            self._reason = reason
            self._fire(Event.REBALANCE_ASKED, now)
        return self._advance(now)

    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """Ask the leader that nobody be given these until they are left out again.

        Their owners give them up as they do with any others, whatever client they
        are; the leader has to be one of ours.
        """
        if self.has_ended or partitions == self._withheld:
            return ()
        self._withheld, self._free, self._is_deaf = partitions, frozenset(), False
        if self.state in {State.STABLE, State.RELEASING}:
            self._reason = "partitions are being rewound"
            self._fire(Event.REBALANCE_ASKED, now)
        return self._advance(now)

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """Those that are withheld and that nobody has, by the generation's word."""
        return dict.fromkeys(self._free, -1 - self.generation)

    @property
    def is_deaf(self) -> bool:
        """Whether the leader of the generation withholds nothing."""
        return self._is_deaf

    # ---- time and the cluster ----------------------------------------------------

    def tick(self, now: float) -> Effects:
        """Do what is due."""
        if lost := self.ledger.expire(now):
            self._emit(fx.Lose(lost))
        if self._poll.is_expired(now):
            self._poll_expired(now)
        if now >= self._unnamed_until:
            self._unnamed, self._unnamed_until = 0, NEVER
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When ``tick`` is due; None if only an input can change anything."""
        deadlines = [NEVER]
        if not self.has_ended:
            deadlines.append(self.ledger.next_deadline() or NEVER)
        if self._unnamed:
            deadlines.append(self._unnamed_until)
        if self._may_expire():
            deadlines.append(self._poll.expires_at)
        if self._heartbeats():
            deadlines.append(self._heartbeat.deadline())
        if self.state is State.JOINING and not self._ticket:
            deadlines.append(self._join_at)
        if self._is_parked() and not self._pulse.in_flight:
            deadlines.append(self._pulse.next_at)
        if self.state is State.RELEASING:
            deadlines.append(self._release_at)
        soonest = min(deadlines)
        return None if soonest == NEVER else soonest

    def metadata_changed(self, layout: Layout, now: float) -> Effects:
        """What is known of topics, those of ``group_topics`` at least."""
        self._layout = layout
        if self.state in {State.STABLE, State.RELEASING} and self._is_outdated():
            self._reason = "the topics of the group changed"
            self._fire(Event.REBALANCE_ASKED, now)
        return self._advance(now)

    def topics_refreshed(self, ticket: int, now: float) -> Effects:
        """The answer to RefreshTopics; what it brought came by `subscribe`."""
        if ticket != self._refresh_ticket or self.state is not State.JOINING:
            return ()
        self._refresh_ticket = 0
        if not self._ticket:
            self._join_at = now
        return self._advance(now)

    def topics_resolved(self, ticket: int, layout: Layout, now: float) -> Effects:
        """The answer to ResolveTopics; a topic that is unknown is left out."""
        if ticket != self._ticket:
            return ()
        assert self._leadership is not None
        self._layout = layout
        try:
            shares = self._leadership.assign(self._assignor(), layout)
        except KafkaError as error:
            self._refused(error, now)
            return self._advance(now)
        self._leadership.note(layout)
        self._fire(Event.ASSIGNMENT_MADE, now)
        self._send_sync(shares, now)
        return self._advance(now)

    def revoke_ended(
        self, claims: tuple[Claim, ...], now: float, *, in_time: bool
    ) -> Effects:
        """A Revoke is done: by the user, or because its time was up."""
        gone = self.ledger.complete(claims)
        if gone and not in_time:
            self._emit(fx.Lose(gone))
        if self.state is State.RELEASING:
            # Others may follow soon, and each JoinGroup makes the group rebalance.
            self._release_at = min(self._release_at, now + self.config.interval)
        return self._advance(now)

    # ---- answers -------------------------------------------------------------------

    def join_answered(
        self, ticket: int, reply: JoinGroupResponse, now: float, roll: float
    ) -> Effects:
        """JoinGroup came back.

        Where the group was found to divide otherwise, the reply may name its protocol.
        """
        if ticket == self._unnamed != 0:
            self._named(reply.member_id)
            return self._advance(now)
        if ticket != self._ticket:
            return ()
        match reply.error_code:
            case ErrorCode.NONE:
                self._joined(reply, now)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = reply.member_id
                self._fire(Event.MEMBER_ID_GIVEN, now)
                self._begin_join(now)
            case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self._inconsistent(reply.protocol_type, reply.protocol_name, now)
            case code:
                self._react(ApiKey.JOIN_GROUP, code, now, roll)
        return self._advance(now)

    def sync_answered(
        self, ticket: int, reply: SyncGroupResponse, now: float, roll: float
    ) -> Effects:
        """SyncGroup came back."""
        if ticket != self._ticket:
            return ()
        self._ticket = 0
        if reply.error_code != ErrorCode.NONE:
            self._react(ApiKey.SYNC_GROUP, reply.error_code, now, roll)
        elif self._names_other(reply.protocol_type, reply.protocol_name):
            self._inconsistent(reply.protocol_type, reply.protocol_name, now)
        else:
            try:
                assigned = decode_assignment(reply.assignment)
                free = decode_free(reply.assignment) if self._withheld else None
            except KafkaError as error:
                self._refused(error, now)
            else:
                self._adopt(assigned, now)
                self._note_free(free)
        return self._advance(now)

    def heartbeat_answered(
        self, ticket: int, code: int, now: float, roll: float
    ) -> Effects:
        """Heartbeat came back."""
        if ticket != self._beat_ticket:
            return ()
        self._beat_ticket = 0
        asked = reaction(ApiKey.HEARTBEAT, code)
        # The coordinator that asks for a rebalance has heard us all right.
        if code == ErrorCode.NONE or asked.step is Step.REJOIN:
            self._beat_failures = 0
            self._heartbeat.answered()
            # Where this process hung for longer than a session, the answer tells of
            # one that is over. To join by it would not do: a group that mixes both
            # protocols lets an expelled member in under its old id (Kafka 4.3), and
            # takes its commits. So it is asked again, which tells.
            if code == ErrorCode.NONE or self._heartbeat.is_expired(now):
                return self._advance(now)
        if asked.step is Step.NONE and asked.retry:
            if asked.refind_coordinator:
                self._emit(fx.ForgetCoordinator())
            self._beat_failed(now, roll)
        else:
            self._react(ApiKey.HEARTBEAT, code, now, roll)
        return self._advance(now)

    def probe_ended(
        self, ticket: int, now: float, roll: float, *, is_silent: bool
    ) -> Effects:
        """The coordinator gave a sign of life, or kept silent though it was asked."""
        if ticket != self._probe_ticket or not self._is_parked():
            return ()
        if is_silent:
            self._emit(fx.ForgetCoordinator())
            self._retry(Event.RETRY, now, roll)
        else:
            self._pulse.answered()
        return self._advance(now)

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup will tell the generation."""
        return self.state is State.JOINING

    def commit_refused(
        self, code: int, identity: tuple[str, int], now: float, roll: float
    ) -> Effects:
        """An OffsetCommit under that member id and generation was refused."""
        step = reaction(ApiKey.OFFSET_COMMIT, code).step
        if identity != (self.member_id, self.generation) or self.generation < 0:
            return ()
        if step in {Step.RESET_GENERATION, Step.RESET_MEMBER}:
            self._react(ApiKey.OFFSET_COMMIT, code, now, roll)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._refused(self._error(code, "OffsetCommit"), now)
        return self._advance(now)

    # ---- what an answer means --------------------------------------------------------

    def _joined(self, reply: JoinGroupResponse, now: float) -> None:
        name = reply.protocol_name
        if self._names_other(reply.protocol_type, None) or not any(
            assignor.name == name for assignor in self.config.assignors
        ):
            self._inconsistent(reply.protocol_type, name, now)
            return
        assert name is not None
        self.member_id, self.generation = reply.member_id, reply.generation_id
        self.protocol = name
        self._heartbeat.start(now)
        if reply.leader != reply.member_id:
            self._fire(Event.JOINED, now)
            self._send_sync((), now)
            return
        try:
            self._leadership = Leadership.of(reply.members)
        except KafkaError as error:
            self._refused(error, now)
            return
        self._fire(Event.ELECTED, now)
        if reply.skip_assignment:
            # A static leader came back to a group that needs no new assignment
            # (KIP-814); it goes on watching the topics.
            self._leadership.note(self._layout)
            self._fire(Event.ASSIGNMENT_MADE, now)
            self._send_sync((), now)
        else:
            self._ticket = self._new_ticket()
            self._emit(
                fx.ResolveTopics(ticket=self._ticket, topics=self._leadership.topics)
            )

    def _adopt(self, assigned: frozenset[TopicPartition], now: float) -> None:
        self._failures = 0
        self._heartbeat.start(now)
        if not all(tp.topic in self._wanted() for tp in assigned):
            self._reason = "the subscription changed during the rebalance"
            self._fire(Event.SYNCED_STALE, now)
            return
        self._latest, self._latest_generation = assigned, self.generation
        # What we listed as ours was kept from the others. If it is not to stay ours,
        # they wait for a JoinGroup without it, even if it is given up already.
        withheld = self._said - assigned
        self._release_at = NEVER
        asked = self.ledger.request(
            self.ledger.owned - assigned, now + self.config.patience
        )
        added = self.ledger.assign(assigned)
        is_less = bool(withheld or self.ledger.pending)
        self._fire(Event.SYNCED_LESS if is_less else Event.SYNCED, now)
        if asked:
            self._emit(fx.RequestRevoke(asked, now + self.config.patience))
        self._emit(fx.Assign(added, self.ledger.owned))
        if self._expects_rebalance():
            self._heartbeat.expect_rebalance(now)
        if self._wanted() != self._said_topics:
            self._reason = "the subscription changed during the rebalance"
            self._fire(Event.SUBSCRIBED, now)
        elif self._is_outdated():
            self._reason = "the topics of the group changed during the rebalance"
            self._fire(Event.REBALANCE_ASKED, now)
        elif self._withheld != self._said_withheld:
            self._reason = "what is being rewound changed during the rebalance"
            self._fire(Event.REBALANCE_ASKED, now)

    def _note_free(self, free: frozenset[TopicPartition] | None) -> None:
        if self._withheld == self._said_withheld:
            self._free = (free or frozenset()) & self._withheld
            self._is_deaf = bool(self._withheld) and free is None

    def _react(self, api: ApiKey, code: int, now: float, roll: float) -> None:
        asked = reaction(api, code)
        if asked.refind_coordinator:
            self._emit(fx.ForgetCoordinator())
        if (event := _STEP_EVENTS.get(asked.step)) is not None:
            self._retry(event, now, roll)
        elif asked.retry:
            self._retry(Event.RETRY, now, roll)
        else:
            self._refused(self._error(code, api.name), now)

    def _retry(self, event: Event, now: float, roll: float) -> None:
        # The first rejoin after a reset is due at once: the group is waiting. A
        # coordinator that only ever resets us must not be hammered, though.
        is_first = self._failures == 0 and event is not Event.RETRY
        delay = 0.0 if is_first else self.config.backoff.delay(self._failures, roll)
        if event is not Event.REBALANCE_ASKED or self.state is State.JOINING:
            self._failures += 1
        self._fire(event, now)
        if self.state is State.JOINING:
            self._ticket = 0
            self._join_at = now + delay

    def _beat_failed(self, now: float, roll: float) -> None:
        self._beat_ticket = 0
        delay = self.config.backoff.delay(self._beat_failures, roll)
        self._beat_failures += 1
        self._heartbeat.failed(now, delay)

    def _inconsistent(self, kind: str | None, name: str | None, now: float) -> None:
        if kind and kind != PROTOCOL_TYPE:
            theirs = f"is one of {kind!r}, not of consumers"
        elif name:
            theirs = f"divides by {name!r}"
        else:
            theirs = "divides otherwise, or not every member of it offers these"
        ours = ", ".join(assignor.name for assignor in self.config.assignors)
        text = f"group {self.config.group_id!r} {theirs}; this member offers {ours}"
        self._refused(broker_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text), now)

    def _error(self, code: int, request: str) -> KafkaError:
        text = f"{request} to group {self.config.group_id!r} was refused"
        return broker_error(code, text)

    def _unanswered(self, ticket: int, now: float, roll: float) -> None:
        if ticket == self._beat_ticket:
            self._beat_failed(now, roll)
        else:
            self._retry(Event.RETRY, now, roll)

    def _left(self, now: float) -> None:
        self._fire(Event.LEAVE_ENDED, now)

    def _refused(self, error: KafkaError, now: float) -> None:
        self._fire(Event.REFUSED, now)
        if self.state is State.FATAL:
            self._emit(fx.Fail(error))
