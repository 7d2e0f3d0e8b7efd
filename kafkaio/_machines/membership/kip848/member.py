"""What a member of a KIP-848 group does by itself, as soon as nothing is in the way.

The half of the machine in ``consumer`` that looks inward: its fields, what is to be
given back and taken on, and what the next heartbeat says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.kip848.states import (
    ENDED,
    JOINED,
    SPEAKING,
    TRANSITIONS,
    Event,
    State,
    transition,
)
from kafkaio._machines.membership.protocol import NEVER, LedgerMember
from kafkaio.types import TopicPartition

__all__ = ["ConsumerMember", "ConsumerMemberConfig", "Slot", "Wanted"]

#: A partition as the coordinator names it.
Slot: TypeAlias = tuple[UUID, int]

_LEAVE: Final = -1
#: The leave of a static member, which is expected back (KIP-345).
_LEAVE_STATIC: Final = -2
#: A heartbeat is answered at once. A coordinator that is silent for so many intervals,
#: and for so many seconds, is taken for dead well within the session that it keeps.
_PATIENT_INTERVALS: Final = 3
_PATIENT_SECONDS: Final = 2.0
#: How many intervals a member without partitions takes to be settled: the others have
#: heard of it by then, and have given up what they have to. It asks more often till
#: then, for brokers compute assignments some time after a join (Kafka 4.3: 1 s).
_SETTLING_INTERVALS: Final = 2
_SETTLING_SECONDS: Final = 3.0
_SETTLING_PACE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberConfig:
    """What a member must know of its group; durations in seconds.

    Attributes:
        group_id: name of the group.
        member_id: what the member calls itself: a new UUID (KIP-1082).
        rebalance: how long the coordinator waits for partitions to be given back, and
            the longest time between two polls.
        backoff: waits between attempts.
        group_instance_id: name of a static member.
        rack: where the member runs.
        assignor: the coordinator's assignor to use; None for its default.
        falls_back: whether a group that cannot be joined by this protocol may be
            joined by the classic one.
    """

    group_id: str
    member_id: str
    rebalance: float = 300.0
    backoff: Backoff = field(default_factory=lambda: Backoff(100, 1000))
    group_instance_id: str | None = None
    rack: str | None = None
    assignor: str | None = None
    falls_back: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to read: names, or what a regular expression matches.

    ``is_open``: the names are still to come.
    """

    names: frozenset[str] = field(default_factory=frozenset)
    regex: str | None = None
    is_open: bool = False

    def has(self, topic: str) -> bool:
        """Whether a topic of that name may be ours; what matches is not ours to say."""
        return self.regex is not None or self.is_open or topic in self.names

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to read for the time being."""
        return self.regex is None and not self.names


@dataclass(frozen=True, slots=True)
class _Said:
    # What the heartbeat in flight tells the coordinator.
    at: float
    wanted: Wanted
    owned: frozenset[Slot] | None
    acks: bool


class ConsumerMember(LedgerMember[State]):
    """One consumer's place in its group. See ``ConsumerMembership``."""

    __slots__ = (
        "_acked",
        "_failures",
        "_ids",
        "_interval",
        "_is_full",
        "_is_new",
        "_is_urgent",
        "_known",
        "_lookups",
        "_must_ack",
        "_name_at",
        "_names",
        "_next_at",
        "_not_before",
        "_said",
        "_settle_at",
        "_target",
        "_ticket",
        "_wanted",
        "config",
        "epoch",
    )

    def __init__(self, config: ConsumerMemberConfig) -> None:
        super().__init__(config.rebalance)
        self.config = config
        self.state = State.UNJOINED
        self.member_id = config.member_id
        self.epoch = 0
        # Whether no coordinator has ever answered.
        self._is_new = True
        self._wanted: Wanted | None = None
        # What the coordinator knows that we want, None if it does not know us.
        self._known: Wanted | None = None
        self._target = frozenset[Slot]()
        # What the coordinator knows that we hold.
        self._acked = frozenset[Slot]()
        self._must_ack = False
        self._names: dict[UUID, str] = {}
        # By which id each partition came that is held.
        self._ids: dict[TopicPartition, UUID] = {}
        self._lookups = 0
        self._name_at = NEVER
        self._settle_at = NEVER
        self._interval = 0.0
        self._next_at = NEVER
        self._not_before = 0.0
        self._is_full = self._is_urgent = False
        # Ticket of the request under way, 0 for none.
        self._ticket = 0
        self._said: _Said | None = None
        self._failures = 0

    def __repr__(self) -> str:
        return (
            f"<ConsumerMembership {self.config.group_id!r} {self.state.name} "
            f"epoch={self.epoch} | {len(self.ledger.owned)} owned, "
            f"{len(self.ledger.pending)} being revoked>"
        )

    @property
    def topics(self) -> frozenset[str] | None:
        """The names that the user wants to read; None without a subscription."""
        return None if self._wanted is None else self._wanted.names

    @property
    def regex(self) -> str | None:
        """The regular expression that the coordinator matches for the user."""
        return None if self._wanted is None else self._wanted.regex

    @property
    def generation(self) -> int:
        """The member epoch, -1 for who is no member: what commits are fenced by."""
        return self.epoch if self.epoch > 0 else -1

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen any more."""
        return self.state in ENDED

    @property
    def patience(self) -> float:
        """How long a requested revoke may take.

        Less than the coordinator waits: past its time everything would be lost. What
        is given up in the end has to be told by a heartbeat still.
        """
        return self.config.rebalance - min(
            2 * self._interval, self.config.rebalance / 2
        )

    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""
        return ticket != 0 and ticket in {self._ticket, self._closing_ticket}

    # ---- states ----------------------------------------------------------------------

    def _fire(self, event: Event, now: float) -> None:
        before, self.state = self.state, transition(self.state, event)
        if event in _FORGETTING:
            self._forget()
        if self.state is not before and self.state in _GOING:
            self._part(now)

    def _forget(self) -> None:
        self.epoch = 0
        self._target = self._acked = frozenset()
        self._known = self._said = None
        self._must_ack = self._is_full = self._is_urgent = False
        self._ticket = 0
        self._name_at = self._settle_at = self._next_at = NEVER
        self._lose()

    def _poll_expired(self, now: float) -> None:
        if self._may_expire():
            self._leave()
            self._fire(Event.POLL_EXPIRED, now)

    # ---- progress --------------------------------------------------------------------

    def _proceed(self, now: float) -> None:
        if self.state in _PROGRESS:
            _PROGRESS[self.state](self, now)

    def _reconcile(self, now: float) -> None:
        wanted = self._wanted or Wanted()
        owned = self.ledger.owned
        self._request(
            [
                tp
                for tp in owned
                if self._slot(tp) not in self._target
                or not wanted.has(tp.topic)
                or tp in self._withheld
            ],
            now,
        )
        self._take_on(wanted, owned, now)
        nameless = self._nameless()
        if now >= self._name_at:
            self._name_at = NEVER  # until there is an answer
            if nameless:
                self._emit(fx.NameTopics(nameless))
        if self.ledger.pending:
            self._fire(Event.DIVERGED, now)
        elif self._slots() != self._acked or (self._must_ack and not nameless):
            self._fire(Event.CONVERGED, now)
        else:
            self._fire(Event.DIVERGED if nameless else Event.ACKNOWLEDGED, now)

    def _take_on(
        self, wanted: Wanted, owned: frozenset[TopicPartition], now: float
    ) -> None:
        # What the coordinator takes for ours, and we have given up, is not ours again
        # before it has heard so: an answer may be older than that.
        fresh = dict[TopicPartition, UUID]()
        for topic_id, number in self._target - self._acked:
            name = self._names.get(topic_id)
            if name is None or not wanted.has(name):
                continue
            tp = TopicPartition(name, number)
            # A topic made anew has another id: the old one's partition goes first.
            if tp not in owned and tp not in self._withheld:
                fresh[tp] = topic_id
        if fresh:
            self._ids = {tp: self._ids[tp] for tp in owned} | fresh
            self._end_settling(now)
            self._emit(fx.Assign(self.ledger.assign(fresh), self.ledger.owned))

    def _begin_settling(self, now: float) -> None:
        heard_by_all = _SETTLING_INTERVALS * self._interval
        self._settle_at = now + max(_SETTLING_SECONDS, heard_by_all)

    def _settle(self, now: float) -> None:
        # There is nothing for us: this is the assignment.
        if now >= self._settle_at:
            self._end_settling(now)
            self._emit(fx.Assign(frozenset(), self.ledger.owned))

    def _end_settling(self, now: float) -> None:
        # Who waits for the first assignment had nothing to poll for.
        if self._settle_at != NEVER:
            self._settle_at = NEVER
            self._poll.polled(now)

    def _part_if_clear(self, now: float) -> None:
        if self.ledger.owned:
            return
        self._leave()
        self._forget()
        self._fire(Event.RELEASED, now)
        if self._wanted is not None:
            self._fire(Event.SUBSCRIBED, now)

    def _leave_if_clear(self, now: float) -> None:
        if self.ledger.owned or self._closing_ticket:
            return
        self._fire(Event.RELEASED, now)
        self._closing_ticket = self._leave()
        if not self._closing_ticket:
            self._fire(Event.LEAVE_ENDED, now)

    def _leave(self) -> int:
        # A join without an answer may have been heard all the same.
        if self._said is None:
            return 0
        ticket = self._new_ticket()
        is_static = self.config.group_instance_id is not None
        self._emit(
            fx.SendConsumerHeartbeat(
                ticket=ticket,
                member_id=self.member_id,
                epoch=_LEAVE_STATIC if is_static else _LEAVE,
                timeout=self._timeout(),
            )
        )
        return ticket

    # ---- heartbeats ------------------------------------------------------------------

    def _speak(self, now: float) -> None:
        if not self._speaks() or self._ticket or now < self._not_before:
            return
        if self._is_pressing() or now >= self._next_at:
            self._say(now)

    def _say(self, now: float) -> None:
        wanted = self._to_tell()
        is_join = self.epoch == 0
        is_full = is_join or self._is_full
        is_ack = self.state in JOINED and not self.ledger.pending
        owned = None
        if is_full or (is_ack and self.state is State.ACKNOWLEDGING):
            owned = frozenset() if is_join else self._slots()
        known = self._known
        names = regex = None
        if is_full or known != wanted:
            names = wanted.names
            had_regex = known is not None and known.regex is not None
            regex = wanted.regex or ("" if had_regex else None)
        self._ticket = self._new_ticket()
        self._said = _Said(now, wanted, owned, is_join or is_ack)
        self._next_at = now + self._pace()
        self._is_full = self._is_urgent = False
        self._must_ack = self._must_ack and not (is_ack and owned is not None)
        self._emit(
            fx.SendConsumerHeartbeat(
                ticket=self._ticket,
                member_id=self.member_id,
                epoch=self.epoch,
                timeout=self._timeout(),
                is_new=self._is_new,
                rack=self.config.rack if is_join else None,
                assignor=self.config.assignor if is_full else None,
                rebalance=self.config.rebalance if is_full else None,
                names=names,
                regex=regex,
                owned=owned,
            )
        )

    def _to_tell(self) -> Wanted:
        # What was told stands while the user's wish is to go, or is not settled.
        if self._wanted is None or self._wanted.is_open:
            return self._known or Wanted()
        return self._wanted

    def _pace(self) -> float:
        is_settling = self._settle_at != NEVER
        return self._interval / _SETTLING_PACE if is_settling else self._interval

    def _timeout(self) -> float:
        if self._is_new:
            return NEVER
        return max(_PATIENT_SECONDS, _PATIENT_INTERVALS * self._interval)

    def _unanswered(self, ticket: int, now: float, roll: float) -> None:
        del ticket  # there is one at a time
        self._beat_failed(now, roll)

    def _left(self, now: float) -> None:
        self._fire(Event.LEAVE_ENDED, now)

    def _beat_failed(self, now: float, roll: float) -> None:
        # Whether it was heard is not known, so the next one says everything.
        self._ticket = 0
        self._is_full = True
        self._not_before = now + self.config.backoff.delay(self._failures, roll)
        self._failures += 1

    def _next_beat(self) -> float:
        if not self._speaks() or self._ticket:
            return NEVER
        return self._not_before if self._is_pressing() else self._next_at

    # ---- questions -------------------------------------------------------------------

    def _speaks(self) -> bool:
        if self._closing_ticket or self.state not in SPEAKING:
            return False
        if self.state is State.JOINING:
            # Brokers of the preview refuse a join for nothing.
            return not self._to_tell().is_nothing
        return self.state not in _GOING or self.epoch > 0

    def _is_pressing(self) -> bool:
        if self.state in {State.JOINING, State.ACKNOWLEDGING}:
            return True
        if self.state in JOINED and self._to_tell() != self._known:
            return True
        return self._is_full or self._is_urgent

    def _may_expire(self) -> bool:
        if self._settle_at != NEVER:
            return False
        return (self.state, Event.POLL_EXPIRED) in TRANSITIONS

    def _slot(self, tp: TopicPartition) -> Slot:
        return self._ids[tp], tp.partition

    def _slots(self) -> frozenset[Slot]:
        held = frozenset(self._slot(tp) for tp in self.ledger.owned)
        return held | self._parked_slots()

    def _parked_slots(self) -> frozenset[Slot]:
        # What we keep from the user and from everybody else.
        if not self._withheld:
            return frozenset()
        parked = self._withheld - self.ledger.owned
        return frozenset(
            slot
            for slot in self._target | self._acked
            if slot[0] in self._names and self._named(slot) in parked
        )

    def _named(self, slot: Slot) -> TopicPartition:
        return TopicPartition(self._names[slot[0]], slot[1])

    def _nameless(self) -> frozenset[UUID]:
        return frozenset(
            topic_id for topic_id, _ in self._target if topic_id not in self._names
        )


_GOING: Final = frozenset({State.PARTING, State.LEAVING})
#: Events that take everything away, whatever the state.
_FORGETTING: Final = frozenset(
    {Event.FENCED, Event.POLL_EXPIRED, Event.REFUSED, Event.LEAVE_ENDED}
)
#: What a state waits for.
_PROGRESS: Final[Mapping[State, Callable[[ConsumerMember, float], None]]] = (
    MappingProxyType(
        {
            State.STABLE: ConsumerMember._reconcile,
            State.RECONCILING: ConsumerMember._reconcile,
            State.ACKNOWLEDGING: ConsumerMember._reconcile,
            State.PARTING: ConsumerMember._part_if_clear,
            State.LEAVING: ConsumerMember._leave_if_clear,
        }
    )
)
