"""What a classic group member does by itself, as soon as nothing is in the way.

The half of the machine in ``classic`` that looks inward: its fields, what a change of
state brings with it, and the progress that is possible in each state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.classic.leader import Leadership
from kafkaio._machines.membership.classic.states import (
    ENDED,
    HEARTBEATING,
    PARKING,
    TRANSITIONS,
    Event,
    State,
    transition,
)
from kafkaio._machines.membership.heartbeat import Heartbeat
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.protocol import NEVER, Effects, LedgerMember
from kafkaio._machines.membership.subscription import (
    Assignor,
    Subscription,
    encode_subscription,
)
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition

__all__ = ["PROTOCOL_TYPE", "Member", "MemberConfig"]

#: What consumers call their groups.
PROTOCOL_TYPE: Final = "consumer"
_REASON_LIMIT = 255
#: Longest time, in seconds, that a JoinGroup waits for metadata.
_REFRESHING: Final = 5.0
#: Brokers give up the commit of offsets after 5 s (``offsets.commit.timeout.ms``).
_COMMITTING: Final = 6.0
#: Seconds that a member who leaves waits for the id that its JoinGroup gives it: the
#: answer that has it comes at once (KIP-394), but for brokers before Kafka 2.2.
_NAMING: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """What a member must know of its group; durations in seconds.

    Attributes:
        group_id: name of the group.
        assignors: in order of preference; the group picks one that all members have.
        session: the member is out when it is unheard of for this long.
        interval: time between heartbeats.
        rebalance: time that the group waits for a member to join again, and the
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
        """Whether partitions are kept through a rebalance: if all assignors can."""
        return all(assignor.cooperative for assignor in self.assignors)

    @property
    def patience(self) -> float:
        """How long a requested revoke may take: less than the group would wait."""
        return self.rebalance - min(2 * self.interval, self.rebalance / 2)

    @property
    def silence(self) -> float:
        """How long a coordinator may take for what it answers at once.

        One that takes longer is taken for dead, when half of the session is left to
        find it again. A commit that waits for replicas may be before it.
        """
        return min(max(_COMMITTING, 3 * self.interval), self.session / 2)

    @property
    def refreshing(self) -> float:
        """Longest time that a JoinGroup waits for metadata: the group waits, too."""
        return min(_REFRESHING, self.session / 3)


class Member(LedgerMember[State]):
    """One consumer's place in its group. See ``ClassicMembership``."""

    __slots__ = (
        "_beat_failures",
        "_beat_ticket",
        "_failures",
        "_free",
        "_heartbeat",
        "_is_deaf",
        "_is_refreshed",
        "_is_silent",
        "_join_at",
        "_latest",
        "_latest_generation",
        "_layout",
        "_leadership",
        "_probe_ticket",
        "_pulse",
        "_reason",
        "_refresh_ticket",
        "_release_at",
        "_said",
        "_said_topics",
        "_said_withheld",
        "_ticket",
        "_topics",
        "_unnamed",
        "_unnamed_until",
        "config",
        "generation",
        "matches_here",
        "protocol",
    )

    def __init__(self, config: MemberConfig) -> None:
        super().__init__(config.rebalance)
        self.config = config
        self.state = State.UNJOINED
        self.generation = -1
        self.protocol = ""
        self._topics: frozenset[str] | None = None
        #: Whether the topics are those that a pattern matches on this side, so that
        #: metadata is refreshed before each JoinGroup.
        self.matches_here = False
        # Whether that was done, or asked for, since the member began to join.
        self._is_refreshed = False
        self._refresh_ticket = 0
        # What the last JoinGroup told the group that we own and read.
        self._said = frozenset[TopicPartition]()
        self._said_topics = frozenset[str]()
        self._said_withheld = frozenset[TopicPartition]()
        # What the leader said of what is withheld.
        self._free = frozenset[TopicPartition]()
        self._is_deaf = False
        self._leadership: Leadership | None = None
        self._layout = Layout({})
        # What we were given last, and when: sticky assignors go by it.
        self._latest = frozenset[TopicPartition]()
        self._latest_generation = -1
        self._heartbeat = Heartbeat(config.interval, config.session)
        # The coordinator's own signs of life while our request is parked at it.
        self._pulse = Heartbeat(config.interval, config.session)
        self._probe_ticket = 0
        self._is_silent = False
        # Tickets of the request under way, 0 for none: JoinGroup, ResolveTopics and
        # SyncGroup follow each other and share one.
        self._ticket = 0
        self._beat_ticket = 0
        # Ticket of a JoinGroup without a member id that was under way when we left, 0
        # for none: its answer names the member that the coordinator is to forget.
        self._unnamed = 0
        self._unnamed_until = NEVER
        self._failures = 0
        self._beat_failures = 0
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
        """What the user wants to read; None without a subscription."""
        return self._topics

    @property
    def patience(self) -> float:
        """How long a requested revoke may take: less than the group would wait."""
        return self.config.patience

    @property
    def is_leader(self) -> bool:
        """Whether this member divides the partitions of the current generation."""
        return self._leadership is not None

    @property
    def group_topics(self) -> frozenset[str]:
        """The topics whose partitions this member has to watch as leader."""
        return frozenset() if self._leadership is None else self._leadership.topics

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen any more."""
        return self.state in ENDED

    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""
        return ticket != 0 and ticket in {
            self._ticket,
            self._beat_ticket,
            self._closing_ticket,
            self._unnamed,
        }

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Effects:
        """A request had no answer, or no coordinator was found for it."""
        if ticket == self._unnamed != 0:
            self._unnamed = 0
            return self._advance(now)
        return super().request_failed(ticket, error, now, roll)

    # ---- states ----------------------------------------------------------------------

    def _fire(self, event: Event, now: float) -> None:
        before, self.state = self.state, transition(self.state, event)
        if (lose := _ON_EVENT.get(event)) is not None:
            lose(self, now)
        if self.state is not before or self.state in _ALWAYS:
            enter = _ON_ENTRY.get(self.state)
            if enter is not None:
                enter(self, now)

    def _begin_join(self, now: float) -> None:
        self._ticket = self._beat_ticket = 0
        self._is_silent = False
        self._join_at = now

    def _enter_joining(self, now: float) -> None:
        self._begin_join(now)
        self._is_refreshed, self._refresh_ticket = False, 0

    def _forget_generation(self, now: float) -> None:
        del now
        self.generation = -1
        self._free = frozenset()
        self._leadership = None
        self._ticket = self._beat_ticket = 0
        self._heartbeat.stop()
        self._lose()

    def _forget_member(self, now: float) -> None:
        self._forget_generation(now)
        self.member_id = ""

    def _prepare(self, now: float) -> None:
        self._ticket = 0
        self._request(self._in_the_way(), now)

    def _go(self, now: float) -> None:
        is_static = self.config.group_instance_id is not None
        if self._ticket and not self.member_id and not is_static:
            self._unnamed, self._unnamed_until = self._ticket, now + _NAMING
        self._ticket = 0
        self._part(now)

    def _poll_expired(self, now: float) -> None:
        if not self._may_expire():
            return
        if self.config.group_instance_id is not None:
            # A static member is expected back: it falls silent instead of leaving, and
            # is out when its session ends before it polls again.
            self._is_silent = True
            return
        self._leave("the consumer did not poll within max_poll_interval_ms")
        self._fire(Event.POLL_EXPIRED, now)

    # ---- progress --------------------------------------------------------------------

    def _proceed(self, now: float) -> None:
        if self.state in _PROGRESS:
            _PROGRESS[self.state](self, now)

    def _speak(self, now: float) -> None:
        self._beat(now)
        self._probe(now)

    def _join_if_clear(self, now: float) -> None:
        if not self._in_the_way():
            self._fire(Event.RELEASED, now)

    def _join_if_due(self, now: float) -> None:
        if self._ticket or now < self._join_at:
            return
        if self.matches_here and not self._is_refreshed:
            self._refresh(now)
            return
        self._leadership = None
        self._unnamed = 0
        self._said, self._said_topics = self.ledger.owned, self._wanted()
        self._said_withheld, self._free = self._withheld, frozenset()
        self._ticket = self._new_ticket()
        self._pulse.start(now)
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
        # A new topic makes the member that sees it first join again, and so the whole
        # group. Members that joined with what they knew before would each have to join
        # once more when they see it.
        self._is_refreshed = True
        self._refresh_ticket = self._new_ticket()
        self._join_at = now + self.config.refreshing
        self._emit(
            fx.RefreshTopics(
                ticket=self._refresh_ticket, timeout=self.config.refreshing
            )
        )

    def _rejoin_if_released(self, now: float) -> None:
        if not self.ledger.pending:
            self._reason = "revoked partitions were given up"
            self._fire(Event.RELEASED, now)
        elif now >= self._release_at:
            self._reason = "some of the revoked partitions were given up"
            self._fire(Event.RELEASE_DUE, now)

    def _part_if_clear(self, now: float) -> None:
        if self.ledger.owned:
            return
        self._leave(self._reason)
        self._forget_member(now)
        self._fire(Event.RELEASED, now)
        if self._topics is not None:
            self._fire(Event.SUBSCRIBED, now)

    def _leave_if_clear(self, now: float) -> None:
        if self.ledger.owned or self._closing_ticket or self._unnamed:
            return
        self._fire(Event.RELEASED, now)
        self._closing_ticket = self._leave(self._reason)
        if not self._closing_ticket:
            self._fire(Event.LEAVE_ENDED, now)

    def _named(self, member_id: str) -> None:
        # The answer to a JoinGroup that we do not want any more.
        self._unnamed = 0
        if self.state is State.LEAVING:
            self.member_id = member_id  # which leaves as any other does
        elif member_id:
            self._emit(
                fx.SendLeave(
                    ticket=self._new_ticket(),
                    member_id=member_id,
                    reason="the consumer unsubscribed",
                )
            )

    def _leave(self, reason: str) -> int:
        # A static member stays in the group until its session ends: it may be back.
        if not self.member_id or self.config.group_instance_id is not None:
            return 0
        ticket = self._new_ticket()
        self._emit(
            fx.SendLeave(
                ticket=ticket, member_id=self.member_id, reason=reason[:_REASON_LIMIT]
            )
        )
        return ticket

    def _beat(self, now: float) -> None:
        if not self._heartbeats():
            return
        if self._heartbeat.is_expired(now):
            self._beat_ticket = 0
            self._emit(fx.ForgetCoordinator())
            self._heartbeat.renew(now)
        if self._heartbeat.is_due(now):
            self._heartbeat.sent(now)
            self._beat_ticket = self._new_ticket()
            self._emit(
                fx.SendHeartbeat(
                    ticket=self._beat_ticket,
                    member_id=self.member_id,
                    generation=self.generation,
                    timeout=min(self.config.silence, self._heartbeat.session_end - now),
                )
            )

    def _probe(self, now: float) -> None:
        # A request that is parked may be answered late, a coordinator that has come to
        # a halt never: only a question on another connection tells them apart.
        if self._is_parked() and self._pulse.is_due(now):
            self._pulse.sent(now)
            self._probe_ticket = self._new_ticket()
            self._emit(
                fx.SendProbe(ticket=self._probe_ticket, timeout=self.config.silence)
            )

    # ---- questions -------------------------------------------------------------------

    def _heartbeats(self) -> bool:
        return (
            self.state in HEARTBEATING
            and self.generation >= 0
            and not self._closing_ticket
            and not self._is_silent
        )

    def _is_parked(self) -> bool:
        return self.state in PARKING and self._ticket != 0

    def _may_expire(self) -> bool:
        return not self._is_silent and (self.state, Event.POLL_EXPIRED) in TRANSITIONS

    def _in_the_way(self) -> frozenset[TopicPartition]:
        if not self.config.is_cooperative:
            return self.ledger.owned
        wanted = self._wanted()
        return frozenset(tp for tp in self.ledger.owned if tp.topic not in wanted)

    def _wanted(self) -> frozenset[str]:
        return frozenset() if self._topics is None else self._topics

    def _is_outdated(self) -> bool:
        return self._leadership is not None and self._leadership.is_outdated(
            self._layout
        )

    def _expects_rebalance(self) -> bool:
        # A cooperative assignment that moves partitions takes two generations: once
        # their owners have given them up they join again, to have them assigned. Only
        # the leader knows whether there are any.
        return self.config.is_cooperative and (
            self._leadership is None or self._leadership.takes_any
        )

    def _assignor(self) -> Assignor:
        (found,) = (a for a in self.config.assignors if a.name == self.protocol)
        return found

    def _names_other(self, protocol_type: str | None, name: str | None) -> bool:
        return protocol_type not in {None, PROTOCOL_TYPE} or (
            name is not None and name != self.protocol
        )

    def _protocols(self) -> tuple[tuple[str, bytes], ...]:
        protocols = list[tuple[str, bytes]]()
        plain = Subscription(
            topics=self._said_topics,
            owned=self._said,
            generation=self.generation,
            rack=self.config.rack,
            withheld=self._said_withheld,
        )
        latest = replace(plain, owned=self._latest, generation=self._latest_generation)
        for assignor in self.config.assignors:
            own = replace(plain, user_data=assignor.user_data(latest))
            protocols.append((assignor.name, encode_subscription(own)))
        return tuple(protocols)

    def _send_sync(self, shares: tuple[tuple[str, bytes], ...], now: float) -> None:
        self._beat_ticket = 0
        self._ticket = self._new_ticket()
        self._pulse.start(now)
        self._emit(
            fx.SendSync(
                ticket=self._ticket,
                member_id=self.member_id,
                generation=self.generation,
                protocol=self.protocol,
                assignments=shares,
            )
        )


_Method = Callable[[Member, float], None]

#: Events that take everything away, whatever the state.
_ON_EVENT: Final[Mapping[Event, _Method]] = MappingProxyType(
    {
        Event.GENERATION_LOST: Member._forget_generation,
        Event.MEMBER_LOST: Member._forget_member,
        Event.POLL_EXPIRED: Member._forget_member,
        Event.REFUSED: Member._forget_member,
        # A heartbeat may still be out.
        Event.LEAVE_ENDED: Member._forget_member,
    }
)
#: What begins with a state.
_ON_ENTRY: Final[Mapping[State, _Method]] = MappingProxyType(
    {
        State.PREPARING: Member._prepare,
        State.JOINING: Member._enter_joining,
        State.PARTING: Member._go,
        State.LEAVING: Member._go,
    }
)
#: States that an event may ask more of without leaving them: a change of the
#: subscription while PREPARING may put further partitions in the way.
_ALWAYS: Final = frozenset({State.PREPARING})
#: What a state waits for.
_PROGRESS: Final[Mapping[State, _Method]] = MappingProxyType(
    {
        State.PREPARING: Member._join_if_clear,
        State.JOINING: Member._join_if_due,
        State.RELEASING: Member._rejoin_if_released,
        State.PARTING: Member._part_if_clear,
        State.LEAVING: Member._leave_if_clear,
    }
)
