"""A member of a group of the KIP-848 protocol, with deferred revocation (KIP-983).

The coordinator computes the assignment and tells each member its own, the target. The
only request is ConsumerGroupHeartbeat, sent every few seconds and whenever there is
something to tell. ``states`` has the table of states and events; ``regex`` tells which
patterns the broker can match; ``effects`` what the machine asks its caller to do.

Reconciling compares levels, it does not follow steps: the member requests the
revocation of whatever it owns that is not in the target, and adds whatever is in the
target, has a known name, and is not owned. Once no revocation is pending, a heartbeat
tells the coordinator what the member owns. The coordinator takes nothing less for an
acknowledgement. So a delayed revocation delays the acknowledgement, and the members
that wait for the partitions with it.

After any failure the next heartbeat is a full one: whether the last was received is
unknown. The others tell what has changed since. A coordinator answers a full heartbeat
with the whole assignment, and the others only if that has changed. So one bad answer
would hold for ever: a full heartbeat follows each change of the target, and is sent
once in a minute, or each time while the target is empty.

The target names topics by id; a topic whose name is not known yet waits, and the others
go on without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.bounds import seconds
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.kip848.states import (
    ENDED,
    HEARTBEATING,
    JOINED,
    TRANSITIONS,
    Kip848Event,
    Kip848State,
    transition,
)
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import NEVER, Effects, Membership
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio.errors import Fenced, KafkaError, UnsupportedVersion
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.types import TopicPartition

#: A topic id and a partition's number, as the coordinator names a partition.
TopicIdPartition: TypeAlias = tuple[UUID, int]

_API: Final = apis.CONSUMER_GROUP_HEARTBEAT
#: The epoch that leaves the group.
_LEAVE: Final = -1
#: The epoch by which a static member leaves, which is expected back (KIP-345).
_LEAVE_STATIC: Final = -2
#: A heartbeat is answered at once. A coordinator that is silent for so many intervals,
#: and for so many seconds, is looked up again, well within the member's session.
_TIMEOUT_INTERVALS: Final = 3
_TIMEOUT_SECONDS: Final = 2.0
#: How long a member without partitions waits before it takes "none" for its first
#: assignment: within so many intervals, and so many seconds, the others have learnt of
#: it and have released what they have to.
_SETTLING_INTERVALS: Final = 2
_SETTLING_SECONDS: Final = 3.0
#: A member that settles, or to which others are about to release partitions, sends so
#: many heartbeats in an interval, with no less than so many seconds between two. Only a
#: heartbeat tells it what was released, and nobody reads that until then.
_EAGER_PACE: Final = 15
_EAGER_SECONDS: Final = 0.1
#: Seconds after a join within which brokers compute the assignment (Kafka 4.3: 1 s).
_COMPUTED: Final = 1.0
#: Seconds between two full heartbeats of a member whose assignment does not change.
_CHECK: Final = 60.0
#: Kafka's default of ``group.consumer.session.timeout.ms``, in seconds: a member is not
#: told the session of its group.
_SESSION: Final = 45.0
#: Errors of a coordinator that refuses this protocol, and may accept the classic one.
_NOT_THIS_PROTOCOL: Final = frozenset(
    {
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)
_RESETS: Final = frozenset({ReactionStep.RESET_MEMBER, ReactionStep.RESET_GENERATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip848MemberConfig:
    """The options of a member of a KIP-848 group; durations in seconds.

    Attributes:
        group_id: name of the group.
        member_id: the member's own choice of its id, a new UUID (KIP-1082).
        rebalance: how long the coordinator waits for partitions to be released, and
            the longest time between two polls.
        backoff: waits between attempts.
        group_instance_id: name of a static member.
        rack: where the member runs.
        assignor: the coordinator's assignor to use; None for its default.
        falls_back: whether the classic protocol may be used where the group cannot be
            joined by this one.
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
class Kip848Subscription:
    """The subscription of the application: names, or a regular expression.

    ``is_open``: the client matches a pattern, and the names are still to come.
    """

    names: frozenset[str] = field(default_factory=frozenset)
    regex: str | None = None
    is_open: bool = False

    def has(self, topic: str) -> bool:
        """Whether the topic may be assigned; with a regex the broker decides."""
        return self.regex is not None or self.is_open or topic in self.names

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be read at present."""
        return self.regex is None and not self.names


@dataclass(frozen=True, slots=True)
class _SentHeartbeat:
    # The content of the heartbeat in flight, and when it was sent.
    at: float
    wanted: Kip848Subscription
    owned: frozenset[TopicIdPartition] | None
    acks: bool


class Kip848Membership(Membership):
    """One consumer's membership in a group of the KIP-848 protocol."""

    group_protocol = "consumer"
    uses_member_epoch = True

    state: Kip848State
    member_id: str

    __slots__ = (
        "_acked",
        "_acked_wanted",
        "_check_at",
        "_eager_until",
        "_failures",
        "_heard_at",
        "_heartbeat_at",
        "_ids",
        "_interval",
        "_is_new",
        "_lookup_at",
        "_lookups",
        "_must_ack",
        "_names",
        "_not_before",
        "_send_full",
        "_send_now",
        "_sent",
        "_settle_at",
        "_target",
        "_ticket",
        "_wanted",
        "config",
        "member_epoch",
        "state",
    )

    def __init__(self, config: Kip848MemberConfig) -> None:
        super().__init__(config.rebalance)
        self.config: Kip848MemberConfig = config
        self.state = Kip848State.UNJOINED
        self.member_id = config.member_id
        self.member_epoch: int = 0
        # Whether no coordinator has ever answered.
        self._is_new = True
        self._wanted: Kip848Subscription | None = None
        # The subscription that the coordinator has acknowledged; None if it does not
        # know this member.
        self._acked_wanted: Kip848Subscription | None = None
        # The partitions that the coordinator assigned last.
        self._target = frozenset[TopicIdPartition]()
        # The partitions that the coordinator knows this member to own.
        self._acked = frozenset[TopicIdPartition]()
        # Whether the target changed since the last acknowledgement.
        self._must_ack = False
        self._names: dict[UUID, str] = {}
        # The topic id by which each owned partition was assigned.
        self._ids: dict[TopicPartition, UUID] = {}
        self._lookups = 0
        self._lookup_at = NEVER
        # When "no partition" counts as the first assignment, NEVER if it has come.
        self._settle_at = NEVER
        # Until when other members may be releasing partitions for this one.
        self._eager_until = -NEVER
        self._interval = 0.0
        # When the last heartbeat that was accepted was sent; NEVER for none.
        self._heard_at = NEVER
        self._heartbeat_at = NEVER
        # From when on a heartbeat asks for the whole assignment.
        self._check_at = NEVER
        self._not_before = 0.0
        # Whether the next heartbeat says everything, and whether it is due at once.
        self._send_full = self._send_now = False
        # Ticket of the request under way, 0 for none.
        self._ticket = 0
        self._sent: _SentHeartbeat | None = None
        self._failures = 0

    def __repr__(self) -> str:
        return (
            f"<Kip848Membership {self.config.group_id!r} {self.state.name} "
            f"epoch={self.member_epoch} | {len(self.ledger.owned)} owned, "
            f"{len(self.ledger.pending)} being revoked>"
        )

    @property
    def topics(self) -> frozenset[str] | None:
        """The names subscribed to; None without a subscription."""
        return None if self._wanted is None else self._wanted.names

    @property
    def regex(self) -> str | None:
        """The regular expression that the coordinator matches; None without one."""
        return None if self._wanted is None else self._wanted.regex

    @property
    def generation(self) -> int:
        """The member epoch, by which commits are fenced; -1 while not a member."""
        return self.member_epoch if self.member_epoch > 0 else -1

    @property
    def has_ended(self) -> bool:
        """Whether the membership is over: nothing more can happen."""
        return self.state in ENDED

    @property
    def _is_static(self) -> bool:
        return self.config.group_instance_id is not None

    @property
    def _revoke_timeout(self) -> float:
        # Less than the coordinator waits, because a heartbeat still has to tell what
        # was released. After the coordinator's own time everything is lost.
        return self.config.rebalance - min(
            2 * self._interval, self.config.rebalance / 2
        )

    def _session_end(self, now: float) -> float:
        return min(self._heard_at, now) + _SESSION

    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""
        return ticket != 0 and ticket in {self._ticket, self._closing_ticket}

    # ---- the application -------------------------------------------------------

    def subscribe(self, topics: frozenset[str], now: float) -> Effects:
        """Read these topics from now on; the set may be empty."""
        return self._want(Kip848Subscription(names=topics), now)

    def subscribe_regex(self, regex: str, now: float) -> Effects:
        """Read the topics that match an RE2 expression at the coordinator."""
        return self._want(Kip848Subscription(regex=regex), now)

    def subscribe_pattern(
        self, pattern: re.Pattern[str], now: float, *, exclude_internal: bool
    ) -> Effects | None:
        """Have the coordinator match a pattern, if RE2 takes it to mean the same.

        Returns:
            None if it does not (see ``to_re2``): the client has to match by itself.
        """
        from kafkaio._machines.membership.kip848.regex import to_re2

        regex = to_re2(pattern, hides_internal=exclude_internal)
        return None if regex is None else self.subscribe_regex(regex, now)

    def unsubscribe(self, now: float) -> Effects:
        """Read nothing: release all partitions, then leave the group."""
        if self.has_ended or self._wanted is None:
            return ()
        self._wanted = None
        self._fire(Kip848Event.UNSUBSCRIBED, now)
        return self._advance(now)

    def close(self, now: float) -> Effects:
        """Release all partitions, leave the group, and end."""
        if self.has_ended:
            return ()
        self._wanted = None
        self._fire(Kip848Event.CLOSED, now)
        return self._advance(now)

    def polled(self, now: float) -> Effects:
        """The application has polled: the poll timer starts again."""
        self._poll.polled(now)
        if self.state is not Kip848State.STALLED:
            return ()  # called for every record: the usual case does nothing else
        self._fire(Kip848Event.POLLED, now)
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> Effects:
        """Send a full heartbeat at once.

        This protocol has no request for a rebalance: the coordinator decides whether
        to compute a new assignment, and it is not told the reason.
        """
        del reason
        self._send_full = self._send_full or self.member_epoch > 0
        return self._advance(now)

    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """Take these from the application but not from the group, until left out.

        The coordinator still counts them as owned by this member, and assigns them to
        no other. It is told nothing. It cannot be asked to withhold what other members
        own.
        """
        if self.has_ended or partitions == self._withheld:
            return ()
        # Withheld before and in the target: added as a new assignment.
        back = self._kept_ids() & self._target
        self._withheld = partitions
        self._acked -= back - self._kept_ids()
        return self._advance(now)

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """The withheld partitions that this member keeps from the application."""
        return dict.fromkeys(map(self._named, self._kept_ids()), -1 - self.member_epoch)

    @property
    def ignores_withholding(self) -> bool:
        """Whether one of the withheld partitions is not this member's."""
        return not self._withheld <= self.ledger.owned | self.free.keys()

    # ---- time and the cluster ----------------------------------------------------

    def tick(self, now: float) -> Effects:
        """Take the steps that are due."""
        self._expire_revokes(now)
        if self._poll.is_expired(now):
            self._poll_expired(now)
        if (
            self._has_been_removed(now)
            and (self.state, Kip848Event.FENCED) in TRANSITIONS
        ):
            self._fire(Kip848Event.FENCED, now)
        self._settle(now)
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When ``tick`` is due; None if only an input can change anything."""
        deadlines = [self._settle_at, self._next_heartbeat()]
        if not self.has_ended:
            deadlines.append(self.ledger.next_deadline() or NEVER)
            deadlines.append(self._removal_at())
        if self.state in JOINED:
            deadlines.append(self._lookup_at)
        if self._may_expire():
            deadlines.append(self._poll.expires_at)
        soonest = min(deadlines)
        return None if soonest == NEVER else soonest

    def topics_named(
        self, names: Mapping[UUID, str], now: float, roll: float
    ) -> Effects:
        """The answer to NameTopics; unknown ids are left out."""
        is_open = self._ticket != 0 or self._failures > 0
        if not (is_open and self._sent is not None and self._sent.owned is not None):
            self._names.update(names)
        # Else a heartbeat without an answer says that the member owns less: the
        # coordinator may take from it what is missing there, without its word. The
        # names are asked for again.
        if self._unnamed_topics():
            self._lookup_at = now + self.config.backoff.delay(self._lookups, roll)
            self._lookups += 1
        else:
            self._lookups = 0
        return self._advance(now)

    def revoke_ended(
        self, claims: tuple[Claim, ...], now: float, *, in_time: bool
    ) -> Effects:
        """The commit and the callback of a Revoke have ended."""
        self._complete_revokes(claims, in_time=in_time)
        return self._advance(now)

    # ---- answers -------------------------------------------------------------------

    def heartbeat_answered(
        self,
        ticket: int,
        reply: ConsumerGroupHeartbeatResponse,
        now: float,
        roll: float,
    ) -> Effects:
        """ConsumerGroupHeartbeat was answered, one that does not leave."""
        if ticket != self._ticket or ticket == 0:
            return ()
        self._ticket = 0
        if reply.error_code == ErrorCode.NONE:
            self._accepted(reply, now)
        else:
            self._react(reply, now, roll)
        return self._advance(now)

    def regex_refused(self, ticket: int) -> Effects:
        """The coordinator knows no regular expressions: the client has to match."""
        if ticket != self._ticket or ticket == 0:
            return ()
        self._ticket = 0
        self._sent = None
        self._send_full = self.member_epoch > 0
        self._wanted = Kip848Subscription(is_open=True)
        # The names then come by `subscribe`.
        return (fx.MatchTopics(),)

    def commit_refused(
        self, code: int, identity: tuple[str, int], now: float, roll: float
    ) -> Effects:
        """A commit or a fetch of offsets under that identity was refused."""
        if identity != (self.member_id, self.member_epoch) or self.member_epoch <= 0:
            return ()
        step = reaction(apis.OFFSET_COMMIT, code).step
        if step in _RESETS:
            self._fence(now, roll)
        elif step is ReactionStep.REFRESH_MEMBER:
            self._send_now = True
        elif code == ErrorCode.FENCED_INSTANCE_ID and self._is_static:
            text = f"OffsetCommit of group {self.config.group_id!r} was refused"
            self._end(broker_error(code, text), now)
        return self._advance(now)

    # ---- the meaning of answers ------------------------------------------------------

    def _want(self, wanted: Kip848Subscription, now: float) -> Effects:
        if self.has_ended or wanted == self._wanted:
            return ()
        self._wanted = wanted
        self._poll.polled(now)
        self._fire(Kip848Event.SUBSCRIBED, now)
        if self.state is Kip848State.JOINING and wanted.is_nothing:
            # No assignment will come, so there is nothing to wait for.
            self._emit(fx.Assign(frozenset(), self.ledger.owned))
        return self._advance(now)

    def _accepted(self, reply: ConsumerGroupHeartbeatResponse, now: float) -> None:
        sent = self._sent
        assert sent is not None
        if self._is_new:  # brokers of the preview choose it, with the first join alone
            self.member_id = reply.member_id or self.member_id
        self._is_new = False
        self.accepted_at: float = now
        self._denied_until = NEVER
        self._heard_at = sent.at
        self._failures = 0
        self._has_no_doubt()
        self._not_before = now
        self.member_epoch = reply.member_epoch
        self._interval = seconds("heartbeat_interval_ms", reply.heartbeat_interval_ms)
        self._acked_wanted = sent.wanted
        if sent.acks and sent.owned is not None:
            self._acked = sent.owned
        if self.state is Kip848State.JOINING:
            self._begin_settling(now)
            if reply.assignment is None or not _target_of(reply):
                # Each of the others has a heartbeat within an interval.
                self._eager_until = now + self._interval + _COMPUTED
            self._fire(Kip848Event.JOINED, now)
        self._heartbeat_at = sent.at + self._heartbeat_interval(now)
        if reply.assignment is not None:
            self._set_target(_target_of(reply), now)

    def _set_target(self, target: frozenset[TopicIdPartition], now: float) -> None:
        if target == self._target:
            return
        # The coordinator waits for the acknowledgement of each target, also of one
        # that in the end adds and revokes nothing.
        self._target = target
        self._check_at = now
        self._must_ack = True
        self._lookup_at = now

    def _react(
        self, reply: ConsumerGroupHeartbeatResponse, now: float, roll: float
    ) -> None:
        code = reply.error_code
        asked = reaction(_API, code)
        if asked.refind_coordinator:
            self._emit(fx.ForgetCoordinator())
        if asked.step in _RESETS or self._has_lost_group(code):
            self._fence(now, roll)
        elif asked.retry:
            self._retry_heartbeat(now, roll)
        elif code == ErrorCode.INVALID_REGULAR_EXPRESSION and self.regex is not None:
            self._wanted = Kip848Subscription(is_open=True)
            self._send_full = self.member_epoch > 0
            self._emit(fx.MatchTopics())
        elif asked.step is ReactionStep.FATAL and self._is_final(
            self._error(reply), now
        ):
            error = self._error(reply, is_end=True)
            self._end(error, now, fits_classic=code in _NOT_THIS_PROTOCOL)
        else:
            self._deny(self._error(reply), now)
            self._retry_heartbeat(now, roll)

    def _has_lost_group(self, code: int) -> bool:
        # The group was deleted while this member belonged to it. Joining again as a
        # new member creates it.
        return code == ErrorCode.GROUP_ID_NOT_FOUND and self.member_epoch > 0

    def _fence(self, now: float, roll: float) -> None:
        # The first rejoin is due at once. Later ones back off, in case the coordinator
        # fences the member again and again.
        delay = self.config.backoff.delay(self._failures - 1, roll)
        self._not_before = now + (delay if self._failures else 0.0)
        self._failures += 1
        self._fire(Kip848Event.FENCED, now)

    def _refused(self, error: KafkaError, now: float) -> None:
        self._end(error, now, fits_classic=isinstance(error, UnsupportedVersion))

    def _end(
        self, error: KafkaError, now: float, *, fits_classic: bool = False
    ) -> None:
        # ``fits_classic``: whether the classic protocol may succeed.
        falls_back = fits_classic and self.config.falls_back and self._is_new
        # One that was replaced has no place to give up.
        is_member = self.member_epoch > 0 and not isinstance(error, Fenced)
        if is_member and self.state not in _DEPARTING:
            self._leave()
        self._fire(Kip848Event.REFUSED, now)
        if self.state is Kip848State.FATAL:
            self._emit(fx.FallBack(error) if falls_back else fx.Fail(error))

    def _error(
        self, reply: ConsumerGroupHeartbeatResponse, *, is_end: bool = False
    ) -> KafkaError:
        why = f": {reply.error_message}" if reply.error_message else ""
        text = f"group {self.config.group_id!r} refused the heartbeat{why}"
        if reply.error_code in _NOT_THIS_PROTOCOL:
            text += '; group_protocol="classic" may work'
        if is_end and self.member_epoch > 0:
            text += "; this consumer cannot go on: close it, and make another one"
        group = self.config.group_id
        return broker_error(reply.error_code, text, api=reply.API_KEY, group=group)

    # ---- states ----------------------------------------------------------------------

    def _fire(self, event: Kip848Event, now: float) -> None:
        before, self.state = self.state, transition(self.state, event)
        if event in _RESETTING:
            self._forget()
        if self.state is not before and self.state in _DEPARTING:
            self._request_all(now)

    def _forget(self) -> None:
        self.member_epoch = 0
        self._target = self._acked = frozenset()
        self._acked_wanted = self._sent = None
        self._must_ack = self._send_full = self._send_now = False
        self._ticket = 0
        self._lookup_at = self._settle_at = self._heartbeat_at = NEVER
        self._heard_at = NEVER
        self._eager_until = -NEVER
        self._lose()

    def _poll_expired(self, now: float) -> None:
        if self._may_expire():
            self._leave()
            self._fire(Kip848Event.POLL_EXPIRED, now)

    # ---- progress --------------------------------------------------------------------

    def _proceed(self, now: float) -> None:
        if self.state in _PROGRESS:
            _PROGRESS[self.state](self, now)

    def _reconcile(self, now: float) -> None:
        wanted = self._wanted or Kip848Subscription()
        owned = self.ledger.owned
        self._request(
            [
                tp
                for tp in owned
                if self._with_id(tp) not in self._target
                or not wanted.has(tp.topic)
                or tp in self._withheld
            ],
            now,
        )
        self._add_assigned(wanted, owned, now)
        unnamed = self._unnamed_topics()
        if now >= self._lookup_at:
            self._lookup_at = NEVER  # until there is an answer
            if unnamed:
                self._emit(fx.NameTopics(unnamed))
        if self.ledger.pending:
            self._fire(Kip848Event.DIVERGED, now)
        elif self._owned_ids() != self._acked or (self._must_ack and not unnamed):
            self._fire(Kip848Event.CONVERGED, now)
        else:
            self._fire(
                Kip848Event.DIVERGED if unnamed else Kip848Event.ACKNOWLEDGED, now
            )

    def _add_assigned(
        self, wanted: Kip848Subscription, owned: frozenset[TopicPartition], now: float
    ) -> None:
        # A partition that was released is not added again before the coordinator has
        # acknowledged the release: the answer that lists it may be older than that.
        fresh = dict[TopicPartition, UUID]()
        for topic_id, number in self._target - self._acked:
            name = self._names.get(topic_id)
            if name is None or not wanted.has(name):
                continue
            tp = TopicPartition(name, number)
            # A topic that was created again has another id: the partition of the old
            # one has to be revoked first.
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
        # No partition has come in time, so "none" is the first assignment.
        if now >= self._settle_at:
            self._end_settling(now)
            self._emit(fx.Assign(frozenset(), self.ledger.owned))

    def _end_settling(self, now: float) -> None:
        # The application had nothing to poll for while it waited.
        if self._settle_at != NEVER:
            self._settle_at = NEVER
            self._poll.polled(now)

    def _unsubscribe_if_clear(self, now: float) -> None:
        if self.ledger.owned:
            return
        self._leave()
        self._forget()
        self._fire(Kip848Event.RELEASED, now)
        if self._wanted is not None:
            self._fire(Kip848Event.SUBSCRIBED, now)

    def _leave_if_clear(self, now: float) -> None:
        if self.ledger.owned or self._closing_ticket:
            return
        self._fire(Kip848Event.RELEASED, now)
        self._closing_ticket = self._leave()
        if not self._closing_ticket:
            self._fire(Kip848Event.LEAVE_ENDED, now)

    def _leave(self) -> int:
        # A join without an answer may have been received all the same.
        if self._sent is None:
            return 0
        ticket = self._new_ticket()
        is_static = self.config.group_instance_id is not None
        self._emit(
            fx.SendConsumerGroupHeartbeat(
                ticket=ticket,
                member_id=self.member_id,
                member_epoch=_LEAVE_STATIC if is_static else _LEAVE,
                timeout=self._timeout(),
            )
        )
        return ticket

    # ---- heartbeats ------------------------------------------------------------------

    def _send_due(self, now: float) -> None:
        if not self._may_heartbeat() or self._ticket or now < self._not_before:
            return
        if self._is_heartbeat_due_now() or now >= self._heartbeat_at:
            self._send_heartbeat(now)

    def _send_heartbeat(self, now: float) -> None:
        wanted = self._subscription()
        is_join = self.member_epoch == 0
        # Also while a topic has no name: perhaps there is none with that id.
        is_settled = self.state in JOINED and not self.ledger.pending
        is_check = is_settled and now >= max(self._check_at, self._heartbeat_at)
        is_full = is_join or self._send_full or is_check
        is_ack = self.state in JOINED and not self.ledger.pending
        owned = None
        if is_full or (is_ack and self.state is Kip848State.ACKNOWLEDGING):
            owned = frozenset() if is_join else self._owned_ids()
        known = self._acked_wanted
        names = regex = None
        if is_full or known != wanted:
            names = wanted.names
            had_regex = known is not None and known.regex is not None
            regex = wanted.regex or ("" if had_regex else None)
        if is_full:
            # A member that owns nothing asks each time, which costs next to nothing.
            self._check_at = now + (_CHECK if self._target else 0.0)
        self._ticket = self._new_ticket()
        self._sent = _SentHeartbeat(now, wanted, owned, is_join or is_ack)
        self._heartbeat_at = now + self._heartbeat_interval(now)
        self._send_full = self._send_now = False
        self._must_ack = self._must_ack and not (is_ack and owned is not None)
        self._emit(
            fx.SendConsumerGroupHeartbeat(
                ticket=self._ticket,
                member_id=self.member_id,
                member_epoch=self.member_epoch,
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

    def _subscription(self) -> Kip848Subscription:
        # While the member is leaving, or the names are still to come, the subscription
        # that the coordinator knows stays as it is.
        if self._wanted is None or self._wanted.is_open:
            return self._acked_wanted or Kip848Subscription()
        return self._wanted

    def _heartbeat_interval(self, now: float) -> float:
        if self._settle_at == NEVER and now >= self._eager_until:
            return self._interval
        eager = max(_EAGER_SECONDS, self._interval / _EAGER_PACE)
        return min(eager, self._interval)

    def _timeout(self) -> float:
        if self._is_new:
            return NEVER
        return max(_TIMEOUT_SECONDS, _TIMEOUT_INTERVALS * self._interval)

    def _retry_request(self, ticket: int, now: float, roll: float) -> None:
        del ticket  # there is one request at a time
        self._retry_heartbeat(now, roll)

    def _left(self, now: float) -> None:
        self._fire(Kip848Event.LEAVE_ENDED, now)

    def _retry_heartbeat(self, now: float, roll: float) -> None:
        # Whether it was received is unknown, so the next one says everything.
        self._ticket = 0
        self._send_full = True
        self._not_before = now + self.config.backoff.delay(self._failures, roll)
        self._failures += 1

    def _next_heartbeat(self) -> float:
        if not self._may_heartbeat() or self._ticket:
            return NEVER
        return self._not_before if self._is_heartbeat_due_now() else self._heartbeat_at

    # ---- questions -------------------------------------------------------------------

    def _may_heartbeat(self) -> bool:
        if self._closing_ticket or self.state not in HEARTBEATING:
            return False
        if self.state is Kip848State.JOINING:
            # Brokers of the preview (3.7 to 3.9) refuse a join without topics.
            return not self._subscription().is_nothing
        return self.state not in _DEPARTING or self.member_epoch > 0

    def _is_heartbeat_due_now(self) -> bool:
        if self.state in {Kip848State.JOINING, Kip848State.ACKNOWLEDGING}:
            return True
        if self.state in JOINED and self._subscription() != self._acked_wanted:
            return True
        return self._send_full or self._send_now

    def _may_expire(self) -> bool:
        if self._settle_at != NEVER:
            return False
        return (self.state, Kip848Event.POLL_EXPIRED) in TRANSITIONS

    def _with_id(self, tp: TopicPartition) -> TopicIdPartition:
        return self._ids[tp], tp.partition

    def _owned_ids(self) -> frozenset[TopicIdPartition]:
        held = frozenset(self._with_id(tp) for tp in self.ledger.owned)
        return held | self._kept_ids()

    def _kept_ids(self) -> frozenset[TopicIdPartition]:
        # The partitions that this member keeps from the application and from others.
        if not self._withheld:
            return frozenset()
        kept = self._withheld - self.ledger.owned
        return frozenset(
            slot
            for slot in self._target | self._acked
            if slot[0] in self._names and self._named(slot) in kept
        )

    def _named(self, slot: TopicIdPartition) -> TopicPartition:
        return TopicPartition(self._names[slot[0]], slot[1])

    def _unnamed_topics(self) -> frozenset[UUID]:
        return frozenset(
            topic_id for topic_id, _ in self._target if topic_id not in self._names
        )


_DEPARTING: Final = frozenset({Kip848State.UNSUBSCRIBING, Kip848State.LEAVING})
#: Events that end the ownership of all partitions, whatever the state.
_RESETTING: Final = frozenset(
    {
        Kip848Event.FENCED,
        Kip848Event.POLL_EXPIRED,
        Kip848Event.REFUSED,
        Kip848Event.LEAVE_ENDED,
    }
)
#: The action in each state.
_PROGRESS: Final[Mapping[Kip848State, Callable[[Kip848Membership, float], None]]] = (
    MappingProxyType(
        {
            Kip848State.STABLE: Kip848Membership._reconcile,
            Kip848State.RECONCILING: Kip848Membership._reconcile,
            Kip848State.ACKNOWLEDGING: Kip848Membership._reconcile,
            Kip848State.UNSUBSCRIBING: Kip848Membership._unsubscribe_if_clear,
            Kip848State.LEAVING: Kip848Membership._leave_if_clear,
        }
    )
)


def _target_of(reply: ConsumerGroupHeartbeatResponse) -> frozenset[TopicIdPartition]:
    assert reply.assignment is not None
    return frozenset(
        (topic.topic_id, number)
        for topic in reply.assignment.topic_partitions
        for number in topic.partitions
    )
