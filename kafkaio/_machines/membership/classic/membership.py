"""A member of a group of the classic protocol (KIP-62, 345, 394, 429, 814).

The coordinator collects one JoinGroup from every member and starts a generation. It
names one member the leader, which computes the assignment; SyncGroup carries it to the
coordinator and to the members. Heartbeats keep the session alive and tell when the next
rebalance begins. ``states`` has the table of states and events; ``leader`` what the
leader does; ``effects`` what the machine asks its caller to do.

With an eager assignor a member releases everything before each JoinGroup. With a
cooperative one (KIP-429) it keeps its partitions through the rebalance, releases those
that the new assignment takes away, and then joins again, so that they can be assigned
to their new owners.

A revocation takes three steps. RequestRevoke stops fetching, while the application
finishes what it has in hand. Revoke, after the application's next step, or at once if
it has nothing in hand, commits and calls back. Only when that has ended does a
JoinGroup go out without the partition. A partition past its deadline is lost instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from kafkaio._dataclass import dataclass, replace
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.classic.leader import Leadership
from kafkaio._machines.membership.classic.states import (
    BLOCKED,
    DEPARTING,
    ENDED,
    HEARTBEATING,
    TRANSITIONS,
    ClassicEvent,
    ClassicState,
    transition,
)
from kafkaio._machines.membership.heartbeat import Heartbeat
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import NEVER, Effects, Membership
from kafkaio._machines.membership.subscription import (
    Assignor,
    Subscription,
    decode_assignment,
    decode_free,
    encode_subscription,
)
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio.errors import Fenced, KafkaError, ProtocolError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.types import TopicPartition

#: The protocol type in JoinGroup by which the coordinator knows a consumer group.
PROTOCOL_TYPE: Final = "consumer"
_REASON_LIMIT: Final = 255
#: Longest time, in seconds, that a JoinGroup waits for metadata.
_REFRESH_LIMIT: Final = 5.0
#: Brokers end the commit of offsets after 5 s (``offsets.commit.timeout.ms``).
_COMMIT_LIMIT: Final = 6.0
#: Seconds that a leaving member waits for the answer to a JoinGroup that gives it its
#: member id. The coordinator sends that at once (KIP-394), except before Kafka 2.2.
_MEMBER_ID_LIMIT: Final = 2.0

#: States in which an answer that is under way decides on the generation.
_REBALANCING: Final = frozenset(
    {ClassicState.JOINING, ClassicState.ASSIGNING, ClassicState.SYNCING}
)
#: States in which no SyncGroup of the present generation is to come.
_SYNC_GIVEN_UP: Final = frozenset(
    {
        ClassicState.PREPARING,
        ClassicState.JOINING,
        ClassicState.UNSUBSCRIBING,
        ClassicState.LEAVING,
    }
)
#: The event of an error, by the step in the table of reactions.
_STEP_EVENTS: Final = {
    ReactionStep.RESET_GENERATION: ClassicEvent.GENERATION_LOST,
    ReactionStep.RESET_MEMBER: ClassicEvent.MEMBER_LOST,
    ReactionStep.REJOIN: ClassicEvent.REBALANCE_NEEDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberConfig:
    """The options of a classic group member; durations in seconds.

    Attributes:
        group_id: name of the group.
        assignors: in order of preference; the group picks one that all members have.
        session: the coordinator removes the member after this time without a heartbeat.
        interval: time between heartbeats.
        rebalance: how long a rebalance waits for a member to join again, and the
            longest time between two polls.
        backoff: waits between attempts.
        group_instance_id: name of a static member.
        rack: where the member runs.
    """

    group_id: str
    assignors: tuple[Assignor, ...]
    session: float = 45.0
    interval: float = 3.0
    rebalance: float = 300.0
    backoff: Backoff = field(default_factory=lambda: Backoff(100, 1000))
    group_instance_id: str | None = None
    rack: str | None = None

    @property
    def is_cooperative(self) -> bool:
        """Whether the member keeps its partitions through a rebalance (KIP-429).

        It does if all assignors are cooperative.
        """
        return all(assignor.cooperative for assignor in self.assignors)

    @property
    def revoke_timeout(self) -> float:
        """How long a revocation may take: less than the group waits for the member."""
        return self.rebalance - min(2 * self.interval, self.rebalance / 2)

    @property
    def answer_timeout(self) -> float:
        """How long the coordinator may take for a request that it answers at once.

        Longer than a commit that waits for replicas, because that may be answered
        first; and at most half of the session, so that the other half is left to find
        the coordinator again.
        """
        return min(max(_COMMIT_LIMIT, 3 * self.interval), self.session / 2)

    @property
    def refresh_timeout(self) -> float:
        """Longest time that a JoinGroup waits for metadata; the group waits with it."""
        return min(_REFRESH_LIMIT, self.session / 3)


class ClassicMembership(Membership):
    """One consumer's membership in a group of the classic protocol."""

    group_protocol = "classic"
    uses_member_epoch = False

    state: ClassicState
    generation: int
    member_id: str

    __slots__ = (
        "_abandoned_join",
        "_abandoned_until",
        "_failures",
        "_free",
        "_handover_due",
        "_heartbeat",
        "_heartbeat_failures",
        "_heartbeat_ticket",
        "_ignores_withholding",
        "_is_refreshed",
        "_is_silent",
        "_join_at",
        "_latest",
        "_latest_generation",
        "_layout",
        "_leadership",
        "_probe_ticket",
        "_probe_timer",
        "_reason",
        "_refresh_ticket",
        "_release_at",
        "_sent_owned",
        "_sent_topics",
        "_sent_withheld",
        "_synced_generation",
        "_ticket",
        "_topics",
        "assignor_name",
        "config",
        "generation",
        "state",
    )

    def __init__(self, config: ClassicMemberConfig) -> None:
        super().__init__(config.rebalance)
        self.config: ClassicMemberConfig = config
        self.state = ClassicState.UNJOINED
        self.generation = -1
        self.assignor_name: str = ""
        self._topics: frozenset[str] | None = None
        # With a pattern matched on the client: whether metadata was refreshed, or a
        # refresh was requested, since the member began to join.
        self._is_refreshed = False
        self._refresh_ticket = 0
        # The content of the last JoinGroup: owned, subscribed to, to be withheld.
        self._sent_owned = frozenset[TopicPartition]()
        self._sent_topics = frozenset[str]()
        self._sent_withheld = frozenset[TopicPartition]()
        # What the leader answered to that: which of the partitions no member owns, and
        # whether it knows of withholding at all.
        self._free = frozenset[TopicPartition]()
        self._ignores_withholding = False
        self._leadership: Leadership | None = None
        # When the leader asks for the rebalance that a member owes after a revocation.
        self._handover_due = NEVER
        self._layout = Layout({})
        # The last assignment and its generation, for sticky assignors.
        self._latest = frozenset[TopicPartition]()
        self._latest_generation = -1
        # The last generation that was completed by a SyncGroup, -1 if none was since
        # the partitions were lost.
        self._synced_generation = -1
        self._heartbeat = Heartbeat(config.interval, config.session)
        # When to check that the coordinator is alive while it keeps a request waiting.
        self._probe_timer = Heartbeat(config.interval, config.session)
        self._probe_ticket = 0
        # A static member whose application does not poll sends no heartbeats.
        self._is_silent = False
        # Tickets of the request under way, 0 for none: JoinGroup, ResolveTopics and
        # SyncGroup follow each other and share one.
        self._ticket = 0
        self._heartbeat_ticket = 0
        # Ticket of a JoinGroup without a member id that was under way when the member
        # left, 0 for none. Its answer tells the id that has to leave the group: without
        # that the coordinator would wait for the end of its session.
        self._abandoned_join = 0
        self._abandoned_until = NEVER
        self._failures = 0
        self._heartbeat_failures = 0
        self._join_at = NEVER
        self._release_at = NEVER
        self._reason = ""

    def __repr__(self) -> str:
        return (
            f"<ClassicMembership {self.config.group_id!r} {self.state.name} "
            f"gen={self.generation} | {len(self.ledger.owned)} owned, "
            f"{len(self.ledger.pending)} being revoked>"
        )

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics subscribed to; None without a subscription."""
        return self._topics

    @property
    def _is_static(self) -> bool:
        return self.config.group_instance_id is not None

    @property
    def _revoke_timeout(self) -> float:
        return self.config.revoke_timeout

    def _removal_at(self) -> float:
        # While a JoinGroup or SyncGroup waits for other members, no session ends.
        return NEVER if self._is_blocked() else self._denied_until

    def _session_end(self, now: float) -> float:
        return min(self._heartbeat.session_end, now + self.config.session)

    @property
    def is_leader(self) -> bool:
        """Whether this member computes the assignment of the current generation."""
        return self._leadership is not None

    @property
    def group_topics(self) -> frozenset[str]:
        """The topics that any member of the group subscribes to, if this one leads."""
        return frozenset() if self._leadership is None else self._leadership.topics

    @property
    def has_ended(self) -> bool:
        """Whether the membership is over: nothing more can happen."""
        return self.state in ENDED

    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""
        return ticket != 0 and ticket in {
            self._ticket,
            self._heartbeat_ticket,
            self._closing_ticket,
            self._abandoned_join,
        }

    # ---- the application -------------------------------------------------------

    def subscribe(self, topics: frozenset[str], now: float) -> Effects:
        """Read these topics from now on; the set may be empty.

        A JoinGroup already under way carries the old topics. The member joins once
        more when it is answered.
        """
        if self.has_ended or topics == self._topics:
            return ()
        self._topics = topics
        self._poll.polled(now)
        self._reason = "the subscription changed"
        self._fire(ClassicEvent.SUBSCRIBED, now)
        return self._advance(now)

    def unsubscribe(self, now: float) -> Effects:
        """Read nothing: release all partitions, then leave the group."""
        if self.has_ended or self._topics is None:
            return ()
        self._topics = None
        self._reason = "the consumer unsubscribed"
        self._fire(ClassicEvent.UNSUBSCRIBED, now)
        return self._advance(now)

    def close(self, now: float) -> Effects:
        """Release all partitions, leave the group, and end."""
        if self.has_ended:
            return ()
        self._topics = None
        self._reason = "the consumer is being closed"
        self._fire(ClassicEvent.CLOSED, now)
        return self._advance(now)

    def polled(self, now: float) -> Effects:
        """The application has polled: the poll timer starts again."""
        self._poll.polled(now)
        if self._is_silent:
            self._is_silent = False
            self._heartbeat.renew(now)
        elif self.state is ClassicState.STALLED:
            self._fire(ClassicEvent.POLLED, now)
        else:
            return ()  # called for every record: the usual case does nothing else
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> Effects:
        """Join again without need (KIP-568), unless a rebalance is under way."""
        if self.state in {ClassicState.STABLE, ClassicState.RELEASING}:
            self._reason = reason
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)
        return self._advance(now)

    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """Ask the leader to assign these to no member, until a later call omits them.

        Their owners release them as any others, whatever client they are. The leader
        has to be a kafkaio client: `ignores_withholding` tells if it is not.
        """
        if self.has_ended or partitions == self._withheld:
            return ()
        self._withheld, self._free = partitions, frozenset()
        self._ignores_withholding = False
        if self.state in {ClassicState.STABLE, ClassicState.RELEASING}:
            self._reason = "partitions are being rewound"
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)
        return self._advance(now)

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """The withheld partitions that no member of this generation owns."""
        return dict.fromkeys(self._free, -1 - self.generation)

    @property
    def ignores_withholding(self) -> bool:
        """Whether this generation's leader did not answer to the withholding."""
        return self._ignores_withholding

    # ---- time and the cluster ----------------------------------------------------

    def tick(self, now: float) -> Effects:
        """Take the steps that are due."""
        self._expire_revokes(now)
        if self._poll.is_expired(now):
            self._poll_expired(now)
        if now >= self._abandoned_until:
            self._abandoned_join, self._abandoned_until = 0, NEVER
        if (
            self._has_been_removed(now)
            and (self.state, ClassicEvent.MEMBER_LOST) in TRANSITIONS
        ):
            self._fire(ClassicEvent.MEMBER_LOST, now)
        if self._awaits_handover() and now >= self._handover_due:
            self._handover_due = NEVER
            self._reason = "a member did not join again after a revocation"
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When ``tick`` is due; None if only an input can change anything."""
        deadlines = [NEVER]
        if not self.has_ended:
            deadlines.append(self.ledger.next_deadline() or NEVER)
            deadlines.append(self._removal_at())
        if self._abandoned_join:
            deadlines.append(self._abandoned_until)
        if self._may_expire():
            deadlines.append(self._poll.expires_at)
        if self._may_heartbeat():
            deadlines.append(self._heartbeat.deadline())
        if self.state is ClassicState.JOINING and not self._ticket:
            deadlines.append(self._join_at)
        if self._is_blocked() and not self._probe_timer.in_flight:
            deadlines.append(self._probe_timer.next_at)
        if self.state is ClassicState.RELEASING:
            deadlines.append(self._release_at)
        if self._awaits_handover():
            deadlines.append(self._handover_due)
        soonest = min(deadlines)
        return None if soonest == NEVER else soonest

    def metadata_changed(self, layout: Layout, now: float) -> Effects:
        """New metadata of at least `group_topics` has come."""
        self._layout = layout
        if (
            self.state in {ClassicState.STABLE, ClassicState.RELEASING}
            and self._is_outdated()
        ):
            self._reason = "the topics of the group changed"
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)
        return self._advance(now)

    def topics_refreshed(self, ticket: int, now: float) -> Effects:
        """RefreshTopics has ended; what it found was passed to `subscribe` before."""
        if ticket != self._refresh_ticket or self.state is not ClassicState.JOINING:
            return ()
        self._refresh_ticket = 0
        if not self._ticket:
            self._join_at = now
        return self._advance(now)

    def topics_resolved(self, ticket: int, layout: Layout, now: float) -> Effects:
        """The answer to ResolveTopics; unknown topics are left out of the layout."""
        if ticket != self._ticket:
            return ()
        assert self._leadership is not None
        self._layout = layout
        try:
            assignments = self._leadership.assign(self._assignor(), layout)
        except KafkaError as error:
            self._refused(error, now)
            return self._advance(now)
        self._leadership.set_basis(layout)
        self._fire(ClassicEvent.ASSIGNMENT_MADE, now)
        self._send_sync(assignments, now)
        return self._advance(now)

    def revoke_ended(
        self, claims: tuple[Claim, ...], now: float, *, in_time: bool
    ) -> Effects:
        """The commit and the callback of a Revoke have ended."""
        self._complete_revokes(claims, in_time=in_time)
        if self.state is ClassicState.RELEASING:
            # Each JoinGroup makes the group rebalance, so wait a little: revocations of
            # other partitions may complete soon.
            self._release_at = min(self._release_at, now + self.config.interval)
        return self._advance(now)

    # ---- answers -------------------------------------------------------------------

    def join_answered(
        self, ticket: int, reply: JoinGroupResponse, now: float, roll: float
    ) -> Effects:
        """JoinGroup was answered.

        A reply with INCONSISTENT_GROUP_PROTOCOL may carry the group's protocol, if the
        caller has found it out.
        """
        if ticket == self._abandoned_join != 0:
            self._abandoned_answered(reply.member_id)
            return self._advance(now)
        if ticket != self._ticket:
            return ()
        match reply.error_code:
            case ErrorCode.NONE:
                self._joined(reply, now, roll)
            case ErrorCode.MEMBER_ID_REQUIRED if not self.member_id:
                self.member_id = reply.member_id
                self._fire(ClassicEvent.MEMBER_ID_GIVEN, now)
                self._begin_join(now)
            case ErrorCode.MEMBER_ID_REQUIRED as code:  # for ever, perhaps
                self.member_id = reply.member_id
                self._react(apis.JOIN_GROUP, code, now, roll)
            case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self._inconsistent(reply.protocol_type, reply.protocol_name, now, roll)
            case code:
                self._react(apis.JOIN_GROUP, code, now, roll)
        return self._advance(now)

    def sync_answered(
        self, ticket: int, reply: SyncGroupResponse, now: float, roll: float
    ) -> Effects:
        """SyncGroup was answered."""
        if ticket != self._ticket:
            return ()
        self._ticket = 0
        if reply.error_code != ErrorCode.NONE:
            self._react(apis.SYNC_GROUP, reply.error_code, now, roll)
        elif self._names_other(reply.protocol_type, reply.protocol_name):
            self._inconsistent(reply.protocol_type, reply.protocol_name, now, roll)
        else:
            try:
                assigned = decode_assignment(reply.assignment)
                free = decode_free(reply.assignment) if self._withheld else None
            except KafkaError as error:
                self._refuse(error, now, roll)
            else:
                self._adopt(assigned, now)
                self._set_free(free)
        return self._advance(now)

    def heartbeat_answered(
        self, ticket: int, code: int, now: float, roll: float
    ) -> Effects:
        """Heartbeat was answered."""
        if ticket != self._heartbeat_ticket:
            return ()
        self._heartbeat_ticket = 0
        asked = reaction(apis.HEARTBEAT, code)
        # A coordinator that asks for a rebalance has received the heartbeat as well.
        if code == ErrorCode.NONE or asked.step is ReactionStep.REJOIN:
            self._heartbeat_failures = 0
            self._has_no_doubt()
            self._denied_until = NEVER
            self.accepted_at = now
            self._heartbeat.answered()
            # If this process hung for longer than a session, the answer may be older
            # than the member's removal. To join on its word would be wrong: a group
            # that mixes both protocols lets a removed member in under its old id
            # (Kafka 4.3), and takes its commits. The next heartbeat, which is due at
            # once, tells whether the member is still in the group.
            if code == ErrorCode.NONE or self._heartbeat.is_expired(now):
                return self._advance(now)
        if asked.retry and asked.step not in _STEP_EVENTS:
            if asked.refind_coordinator:
                self._emit(fx.ForgetCoordinator())
            self._retry_heartbeat(now, roll)
        else:
            self._react(apis.HEARTBEAT, code, now, roll)
        return self._advance(now)

    def probe_ended(
        self, ticket: int, now: float, roll: float, *, is_silent: bool
    ) -> Effects:
        """The coordinator answered to a probe, or did not within its timeout."""
        if ticket != self._probe_ticket or not self._is_blocked():
            return ()
        if is_silent:
            self._emit(fx.ForgetCoordinator())
            self._retry(ClassicEvent.RETRY, now, roll)
        else:
            self._probe_timer.answered()
        return self._advance(now)

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup or SyncGroup decides on the generation."""
        return self.state in _REBALANCING

    def commit_refused(
        self, code: int, identity: tuple[str, int], now: float, roll: float
    ) -> Effects:
        """A commit or a fetch of offsets under that identity was refused."""
        step = reaction(apis.OFFSET_COMMIT, code).step
        if identity != (self.member_id, self.generation) or self.generation < 0:
            return ()
        if step in {ReactionStep.RESET_GENERATION, ReactionStep.RESET_MEMBER}:
            self._react(apis.OFFSET_COMMIT, code, now, roll)
        elif code == ErrorCode.FENCED_INSTANCE_ID and self._is_static:
            self._refused(self._error(code, "OffsetCommit", is_end=True), now)
        return self._advance(now)

    def restore_generation(self) -> bool:
        """Return to the generation before, if the present one was never completed.

        JoinGroup tells a generation that the coordinator does not store before the
        leader's SyncGroup. If the coordinator moves to another broker in between, that
        one knows only the generation before, in which the partitions that this member
        still owns are its own. So commits of them are valid under that generation,
        until the next JoinGroup is answered. If the generation was completed for other
        members, the coordinator refuses the one before.

        It stays while a SyncGroup is under way, whose answer decides.
        """
        is_completed = self._synced_generation in {-1, self.generation}
        if is_completed or self.state not in _SYNC_GIVEN_UP:
            return False
        self.generation = self._synced_generation
        return True

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Effects:
        """A request had no answer, or no coordinator was found for it."""
        if ticket == self._abandoned_join != 0:
            self._abandoned_join = 0
            return self._advance(now)
        return super().request_failed(ticket, error, now, roll)

    # ---- the meaning of answers ------------------------------------------------------

    def _joined(self, reply: JoinGroupResponse, now: float, roll: float) -> None:
        name = reply.protocol_name
        if self._names_other(reply.protocol_type, None) or not any(
            assignor.name == name for assignor in self.config.assignors
        ):
            self._inconsistent(reply.protocol_type, name, now, roll)
            return
        assert name is not None
        if self.member_id not in {"", reply.member_id}:
            # Under the other id nobody would answer for this member, whose place the
            # group would keep until its session ends.
            self._refuse(
                ProtocolError("JoinGroup was answered to another member"), now, roll
            )
            return
        self.member_id, self.generation = reply.member_id, reply.generation_id
        self.assignor_name = name
        self._denied_until = NEVER
        self.accepted_at = now
        self._heartbeat.start(now)
        if reply.leader != reply.member_id:
            self._fire(ClassicEvent.JOINED, now)
            self._send_sync((), now)
            return
        try:
            self._leadership = Leadership.from_members(reply.members)
        except KafkaError as error:
            self._refuse(error, now, roll)
            return
        self._fire(ClassicEvent.ELECTED, now)
        if reply.skip_assignment:
            # A static leader returned to a group that needs no new assignment
            # (KIP-814). It still watches the topics.
            self._leadership.set_basis(self._layout)
            self._leadership.expect_revocations()
            self._fire(ClassicEvent.ASSIGNMENT_MADE, now)
            self._send_sync((), now)
        else:
            self._ticket = self._new_ticket()
            self._emit(
                fx.ResolveTopics(ticket=self._ticket, topics=self._leadership.topics)
            )

    def _adopt(self, assigned: frozenset[TopicPartition], now: float) -> None:
        self._failures = 0
        self._has_no_doubt()
        self.accepted_at: float = now
        self._heartbeat.start(now)
        self._synced_generation = self.generation
        if not all(tp.topic in self._subscribed() for tp in assigned):
            self._reason = "the subscription changed during the rebalance"
            self._fire(ClassicEvent.SYNCED_STALE, now)
            return
        self._latest, self._latest_generation = assigned, self.generation
        # The leader kept from the others what our JoinGroup listed as owned. They get
        # what is not assigned to us any more only after a JoinGroup without it, even
        # if we have released or lost it since.
        blocked = self._sent_owned - assigned
        self._release_at = NEVER
        deadline = now + self._revoke_timeout
        requested = self.ledger.request(self.ledger.owned - assigned, deadline)
        added = self.ledger.assign(assigned)
        is_less = bool(blocked or self.ledger.pending)
        self._fire(ClassicEvent.SYNCED_LESS if is_less else ClassicEvent.SYNCED, now)
        if requested:
            self._emit(fx.RequestRevoke(requested, deadline))
        self._emit(fx.Assign(added, self.ledger.owned))
        if self._expects_rebalance():
            self._heartbeat.expect_rebalance(now)
        # A static member that restarts gets its assignment again without a rebalance
        # (KIP-345). If it had to release a partition and to join again after that, it
        # does not know so, and nobody else would ever get the partition.
        self._handover_due = now + self.config.rebalance + self.config.session
        if self._subscribed() != self._sent_topics:
            self._reason = "the subscription changed during the rebalance"
            self._fire(ClassicEvent.SUBSCRIBED, now)
        elif self._is_outdated():
            self._reason = "the topics of the group changed during the rebalance"
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)
        elif self._withheld != self._sent_withheld:
            self._reason = "a rewind began or ended during the rebalance"
            self._fire(ClassicEvent.REBALANCE_NEEDED, now)

    def _set_free(self, free: frozenset[TopicPartition] | None) -> None:
        # The answer to an older request says nothing of what is withheld now.
        if self._withheld == self._sent_withheld:
            self._free = (free or frozenset()) & self._withheld
            self._ignores_withholding = bool(self._withheld) and free is None

    def _react(self, api: int, code: int, now: float, roll: float) -> None:
        from kafkaio.protocol._api_keys import ApiKey  # for errors alone

        name = ApiKey(api).name
        asked = reaction(api, code)
        if asked.refind_coordinator:
            self._emit(fx.ForgetCoordinator())
        if (event := _STEP_EVENTS.get(asked.step)) is not None:
            self._retry(event, now, roll)
        elif asked.retry:
            self._retry(ClassicEvent.RETRY, now, roll)
        elif asked.step is ReactionStep.FATAL and self._is_final(
            self._error(code, name), now
        ):
            self._refused(self._error(code, name, is_end=True), now)
        else:
            self._deny(self._error(code, name), now)
            if api == apis.HEARTBEAT:
                self._retry_heartbeat(now, roll)
            else:
                self._retry(ClassicEvent.RETRY, now, roll)

    def _refuse(self, error: KafkaError, now: float, roll: float) -> None:
        # What cannot be used may be one bad answer: then the next one can.
        if self._is_final(error, now):
            self._refused(error, now)
        else:
            self._deny(error, now)
            self._retry(ClassicEvent.RETRY, now, roll)

    def _retry(self, event: ClassicEvent, now: float, roll: float) -> None:
        # The first rejoin after a reset is due at once: the group is waiting. Later
        # ones back off, in case the coordinator resets the member again and again.
        is_first = self._failures == 0 and event is not ClassicEvent.RETRY
        delay = 0.0 if is_first else self.config.backoff.delay(self._failures, roll)
        if (
            event is not ClassicEvent.REBALANCE_NEEDED
            or self.state is ClassicState.JOINING
        ):
            self._failures += 1
        self._fire(event, now)
        if self.state is ClassicState.JOINING:
            self._ticket = 0
            self._join_at = now + delay

    def _retry_heartbeat(self, now: float, roll: float) -> None:
        self._heartbeat_ticket = 0
        delay = self.config.backoff.delay(self._heartbeat_failures, roll)
        self._heartbeat_failures += 1
        self._heartbeat.failed(now, delay)

    def _inconsistent(
        self, kind: str | None, name: str | None, now: float, roll: float
    ) -> None:
        if kind and kind != PROTOCOL_TYPE:
            theirs = f"has the protocol type {kind!r}, not {PROTOCOL_TYPE!r}"
        elif name:
            theirs = f"uses the assignor {name!r}"
        else:
            theirs = "uses another assignor, or not all of its members offer these"
        ours = ", ".join(assignor.name for assignor in self.config.assignors)
        text = f"group {self.config.group_id!r} {theirs}; this member offers {ours}"
        error = broker_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
        self._refuse(error, now, roll)

    def _error(self, code: int, request: str, *, is_end: bool = False) -> KafkaError:
        text = f"{request} to group {self.config.group_id!r} was refused"
        if is_end and self.generation >= 0:
            text += "; this consumer cannot go on: close it, and make another one"
        group = self.config.group_id
        return broker_error(code, text, api=apis.JOIN_GROUP, group=group)

    def _retry_request(self, ticket: int, now: float, roll: float) -> None:
        if ticket == self._heartbeat_ticket:
            self._retry_heartbeat(now, roll)
        else:
            self._retry(ClassicEvent.RETRY, now, roll)

    def _left(self, now: float) -> None:
        self._fire(ClassicEvent.LEAVE_ENDED, now)

    def _refused(self, error: KafkaError, now: float) -> None:
        # One that was replaced has no place to give up.
        if self.state not in DEPARTING and not isinstance(error, Fenced):
            self._leave("the consumer has failed")
        self._fire(ClassicEvent.REFUSED, now)
        if self.state is ClassicState.FATAL:
            self._emit(fx.Fail(error))

    # ---- states ----------------------------------------------------------------------

    def _fire(self, event: ClassicEvent, now: float) -> None:
        before, self.state = self.state, transition(self.state, event)
        if (forget := _ON_EVENT.get(event)) is not None:
            forget(self, now)
        if self.state is not before or self.state in _REENTERED:
            enter = _ON_ENTRY.get(self.state)
            if enter is not None:
                enter(self, now)

    def _begin_join(self, now: float) -> None:
        self._ticket = self._heartbeat_ticket = 0
        self._is_silent = False
        self._join_at = now

    def _enter_joining(self, now: float) -> None:
        self._begin_join(now)
        self._is_refreshed, self._refresh_ticket = False, 0

    def _forget_generation(self, now: float) -> None:
        del now
        self.generation = self._synced_generation = -1
        self._free = frozenset()
        self._leadership = None
        self._ticket = self._heartbeat_ticket = 0
        self._heartbeat.stop()
        self._lose()

    def _forget_member(self, now: float) -> None:
        self._forget_generation(now)
        self.member_id = ""

    def _prepare(self, now: float) -> None:
        self._ticket = 0
        self._request(self._to_release_first(), now)

    def _begin_leaving(self, now: float) -> None:
        is_static = self.config.group_instance_id is not None
        if self._ticket and not self.member_id and not is_static:
            self._abandoned_join, self._abandoned_until = (
                self._ticket,
                now + _MEMBER_ID_LIMIT,
            )
        self._ticket = 0
        self._request_all(now)

    def _poll_expired(self, now: float) -> None:
        if not self._may_expire():
            return
        if self.config.group_instance_id is not None:
            # A static member is expected back. It stops its heartbeats instead of
            # leaving; the coordinator removes it if its session ends before it polls.
            self._is_silent = True
            return
        self._leave("the consumer did not poll within max_poll_interval_ms")
        self._fire(ClassicEvent.POLL_EXPIRED, now)

    # ---- progress --------------------------------------------------------------------

    def _proceed(self, now: float) -> None:
        if self.state in _PROGRESS:
            _PROGRESS[self.state](self, now)

    def _send_due(self, now: float) -> None:
        self._send_heartbeat(now)
        self._send_probe(now)

    def _join_if_clear(self, now: float) -> None:
        if not self._to_release_first():
            self._fire(ClassicEvent.RELEASED, now)

    def _join_if_due(self, now: float) -> None:
        if self._ticket or now < self._join_at:
            return
        if self.matches_on_client and not self._is_refreshed:
            self._refresh(now)
            return
        self._leadership = None
        self._abandoned_join = 0
        self._sent_owned, self._sent_topics = self.ledger.owned, self._subscribed()
        self._sent_withheld, self._free = self._withheld, frozenset()
        self._ticket = self._new_ticket()
        self._probe_timer.start(now)
        reason, self._reason = self._reason, ""
        self._emit(
            fx.SendJoin(
                ticket=self._ticket,
                member_id=self.member_id,
                protocols=self._protocols(),
                reason=reason[:_REASON_LIMIT],
            )
        )

    def _refresh(self, now: float) -> None:
        # The first member that sees a new topic joins again, and so the whole group
        # does. Without a refresh each other member would join with its old metadata,
        # and start one more rebalance when it sees the topic.
        self._is_refreshed = True
        self._refresh_ticket = self._new_ticket()
        self._join_at = now + self.config.refresh_timeout
        self._emit(
            fx.RefreshTopics(
                ticket=self._refresh_ticket, timeout=self.config.refresh_timeout
            )
        )

    def _rejoin_if_released(self, now: float) -> None:
        if not self.ledger.pending:
            self._reason = "revoked partitions were released"
            self._fire(ClassicEvent.RELEASED, now)
        elif now >= self._release_at:
            self._reason = "some of the revoked partitions were released"
            self._fire(ClassicEvent.RELEASE_DUE, now)

    def _unsubscribe_if_clear(self, now: float) -> None:
        if self.ledger.owned:
            return
        self._leave(self._reason)
        self._forget_member(now)
        self._fire(ClassicEvent.RELEASED, now)
        if self._topics is not None:
            self._fire(ClassicEvent.SUBSCRIBED, now)

    def _leave_if_clear(self, now: float) -> None:
        if self.ledger.owned or self._closing_ticket or self._abandoned_join:
            return
        self._fire(ClassicEvent.RELEASED, now)
        self._closing_ticket = self._leave(self._reason)
        if not self._closing_ticket:
            self._fire(ClassicEvent.LEAVE_ENDED, now)

    def _abandoned_answered(self, member_id: str) -> None:
        # The answer to the JoinGroup that was under way when the member left.
        self._abandoned_join = 0
        if self.state is ClassicState.LEAVING:
            self.member_id = member_id  # the usual way out sends its LeaveGroup
        elif member_id:
            self._emit(
                fx.SendLeave(
                    ticket=self._new_ticket(),
                    member_id=member_id,
                    reason="the consumer unsubscribed",
                )
            )

    def _leave(self, reason: str) -> int:
        # A static member stays in the group until its session ends: it may return.
        if not self.member_id or self.config.group_instance_id is not None:
            return 0
        ticket = self._new_ticket()
        self._emit(
            fx.SendLeave(
                ticket=ticket, member_id=self.member_id, reason=reason[:_REASON_LIMIT]
            )
        )
        return ticket

    def _send_heartbeat(self, now: float) -> None:
        if not self._may_heartbeat():
            return
        if self._heartbeat.is_expired(now):
            self._heartbeat_ticket = 0
            self._emit(fx.ForgetCoordinator())
            self._heartbeat.renew(now)
        if self._heartbeat.is_due(now):
            self._heartbeat.sent(now)
            self._heartbeat_ticket = self._new_ticket()
            self._emit(
                fx.SendHeartbeat(
                    ticket=self._heartbeat_ticket,
                    member_id=self.member_id,
                    generation=self.generation,
                    timeout=min(
                        self.config.answer_timeout, self._heartbeat.session_end - now
                    ),
                )
            )

    def _send_probe(self, now: float) -> None:
        # The coordinator may answer JoinGroup and SyncGroup late, and one that has
        # stopped never does. Only a request on another connection tells which it is.
        if self._is_blocked() and self._probe_timer.is_due(now):
            self._probe_timer.sent(now)
            self._probe_ticket = self._new_ticket()
            self._emit(
                fx.SendProbe(
                    ticket=self._probe_ticket, timeout=self.config.answer_timeout
                )
            )

    # ---- questions -------------------------------------------------------------------

    def _may_heartbeat(self) -> bool:
        return (
            self.state in HEARTBEATING
            and self.generation >= 0
            and not self._closing_ticket
            and not self._is_silent
        )

    def _is_blocked(self) -> bool:
        return self.state in BLOCKED and self._ticket != 0

    def _may_expire(self) -> bool:
        return (
            not self._is_silent
            and (self.state, ClassicEvent.POLL_EXPIRED) in TRANSITIONS
        )

    def _to_release_first(self) -> frozenset[TopicPartition]:
        if not self.config.is_cooperative:
            return self.ledger.owned
        wanted = self._subscribed()
        return frozenset(tp for tp in self.ledger.owned if tp.topic not in wanted)

    def _subscribed(self) -> frozenset[str]:
        return frozenset() if self._topics is None else self._topics

    def _is_outdated(self) -> bool:
        return self._leadership is not None and self._leadership.is_outdated(
            self._layout
        )

    def _expects_rebalance(self) -> bool:
        # A cooperative assignment that moves partitions takes two generations: their
        # owners release them and join again, so that they can be assigned. Only the
        # leader knows whether any partition moves.
        return self.config.is_cooperative and (
            self._leadership is None or self._leadership.has_revocations
        )

    def _awaits_handover(self) -> bool:
        return (
            self.state is ClassicState.STABLE
            and self.config.is_cooperative
            and self._leadership is not None
            and self._leadership.has_revocations
        )

    def _assignor(self) -> Assignor:
        (found,) = (a for a in self.config.assignors if a.name == self.assignor_name)
        return found

    def _names_other(self, protocol_type: str | None, name: str | None) -> bool:
        return protocol_type not in {None, PROTOCOL_TYPE} or (
            name is not None and name != self.assignor_name
        )

    def _protocols(self) -> tuple[tuple[str, bytes], ...]:
        protocols = list[tuple[str, bytes]]()
        plain = Subscription(
            topics=self._sent_topics,
            owned=self._sent_owned,
            generation=self.generation,
            rack=self.config.rack,
            withheld=self._sent_withheld,
        )
        latest = replace(plain, owned=self._latest, generation=self._latest_generation)
        for assignor in self.config.assignors:
            own = replace(plain, user_data=assignor.user_data(latest))
            protocols.append((assignor.name, encode_subscription(own)))
        return tuple(protocols)

    def _send_sync(
        self, assignments: tuple[tuple[str, bytes], ...], now: float
    ) -> None:
        self._heartbeat_ticket = 0
        self._ticket = self._new_ticket()
        self._probe_timer.start(now)
        self._emit(
            fx.SendSync(
                ticket=self._ticket,
                member_id=self.member_id,
                generation=self.generation,
                protocol=self.assignor_name,
                assignments=assignments,
            )
        )


_Method = Callable[[ClassicMembership, float], None]

#: Events that end the ownership of all partitions, whatever the state.
_ON_EVENT: Final[Mapping[ClassicEvent, _Method]] = MappingProxyType(
    {
        ClassicEvent.GENERATION_LOST: ClassicMembership._forget_generation,
        ClassicEvent.MEMBER_LOST: ClassicMembership._forget_member,
        ClassicEvent.POLL_EXPIRED: ClassicMembership._forget_member,
        ClassicEvent.REFUSED: ClassicMembership._forget_member,
        # A heartbeat may still be under way.
        ClassicEvent.LEAVE_ENDED: ClassicMembership._forget_member,
    }
)
#: The action on entering a state.
_ON_ENTRY: Final[Mapping[ClassicState, _Method]] = MappingProxyType(
    {
        ClassicState.PREPARING: ClassicMembership._prepare,
        ClassicState.JOINING: ClassicMembership._enter_joining,
        ClassicState.UNSUBSCRIBING: ClassicMembership._begin_leaving,
        ClassicState.LEAVING: ClassicMembership._begin_leaving,
    }
)
#: States whose entry action runs again on every event that keeps them: a change of the
#: subscription while PREPARING may add partitions that have to be released first.
_REENTERED: Final = frozenset({ClassicState.PREPARING})
#: The action that each state waits for.
_PROGRESS: Final[Mapping[ClassicState, _Method]] = MappingProxyType(
    {
        ClassicState.PREPARING: ClassicMembership._join_if_clear,
        ClassicState.JOINING: ClassicMembership._join_if_due,
        ClassicState.RELEASING: ClassicMembership._rejoin_if_released,
        ClassicState.UNSUBSCRIBING: ClassicMembership._unsubscribe_if_clear,
        ClassicState.LEAVING: ClassicMembership._leave_if_clear,
    }
)
