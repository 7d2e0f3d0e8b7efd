"""The member of a share group (KIP-932), as a machine without I/O.

``states`` has the table of states and events. The only request is ShareGroupHeartbeat.
Nobody at the brokers checks whether a member that fetches belongs to the group, so the
machine says when fetching must stop: `SetAssignment` without partitions when it is
fenced (25, 110), leaves, is refused, or when its session has ended by the clock.

The coordinator sends the assignment when it has changed, and in answer to a heartbeat
with the names of topics. So one lost or bad answer would hold for ever: a heartbeat has
the names after each failure, once in a minute, and each time while nothing is assigned.

What a coordinator refuses has three ends, as for other members
(`kafkaio._machines.membership.protocol`): a passing reason is retried in silence; what
somebody else can change (a missing right) is reported and retried; what no repetition
can change ends the membership. A member that was never accepted ends at the second,
too, so that a start fails with a clear error. One that was accepted once believes the
third only if it stays the same for some seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.bounds import seconds
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._machines.share.states import (
    ENDED,
    HEARTBEATING,
    ShareEvent,
    ShareState,
    transition,
)
from kafkaio.errors import AuthenticationError, BrokerError, KafkaError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode

_API: Final = apis.SHARE_GROUP_HEARTBEAT
_NEVER: Final = float("inf")
#: The epoch that leaves the group.
_LEAVE: Final = -1
#: A heartbeat is answered at once. A coordinator that is silent for so many intervals,
#: and for so many seconds, is looked up again, well within the member's session.
_TIMEOUT_INTERVALS: Final = 3
_TIMEOUT_SECONDS: Final = 2.0
#: A join may take longer: the first of a cluster creates ``__share_group_state``.
_JOIN_TIMEOUT: Final = 30.0
#: Kafka's default of ``group.share.session.timeout.ms``, in seconds. A member is not
#: told the session of its group. Where it is shorter, a member without a coordinator
#: fetches for longer than it belongs to the group, and the worst of that is that it
#: works on partitions that other members have, too.
_SESSION: Final = 45.0
#: Seconds between two heartbeats with the names of topics.
_CHECK: Final = 60.0
#: Seconds for which a member that was accepted is refused for the same lasting reason
#: before it believes that.
_BELIEVED_AFTER: Final = 10.0
_RESETS: Final = frozenset({ReactionStep.RESET_MEMBER, ReactionStep.RESET_GENERATION})
#: Codes of a coordinator whose group of that name is not a share group.
_OTHER_KIND: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
)


@dataclass(frozen=True, slots=True)
class SendShareHeartbeat:
    """Send a ShareGroupHeartbeat; epoch 0 joins, -1 leaves; None: unchanged."""

    ticket: int
    member_id: str
    member_epoch: int
    topics: tuple[str, ...] | None
    timeout: float


@dataclass(frozen=True, slots=True)
class SetAssignment:
    """Fetch from these partitions, and from no others; none while fenced."""

    partitions: frozenset[TopicIdPartition]


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """Look the coordinator up before the next request."""


@dataclass(frozen=True, slots=True)
class ReportError:
    """Raise this from the next read; the member goes on trying."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class EndMembership:
    """The member cannot go on: the group refuses it for good."""

    error: KafkaError


ShareEffect: TypeAlias = (
    SendShareHeartbeat | SetAssignment | ForgetCoordinator | ReportError | EndMembership
)


class ShareHeartbeatPort(Protocol):
    """The fields of a ShareGroupHeartbeatResponse that the machine reads."""

    error_code: int
    error_message: str | None
    member_epoch: int
    heartbeat_interval_ms: int


@dataclass(frozen=True, slots=True)
class _SentHeartbeat:
    # The content of the heartbeat in flight, and when it was sent.
    at: float
    wanted: frozenset[str]


class ShareMembership:
    """One member of a share group.

    Every method that takes ``now`` returns the effects, in order. Times are seconds of
    any monotonic clock; ``roll`` is a random number in [0, 1). Every request has a
    ticket, which comes back with its answer; a late answer changes nothing.

    Args:
        group_id: the group.
        member_id: chosen by the client, for life (a UUID as Kafka writes it).
        backoff: waits between attempts.
    """

    __slots__ = (
        "_assignment",
        "_backoff",
        "_check_at",
        "_doubted",
        "_doubted_since",
        "_failures",
        "_fetching",
        "_group_id",
        "_heartbeat_at",
        "_interval",
        "_is_reported",
        "_known",
        "_leave_ticket",
        "_member_id",
        "_not_before",
        "_out",
        "_sends_names",
        "_sent",
        "_session_end",
        "_ticket",
        "_tickets",
        "_wanted",
        "_was_accepted",
        "member_epoch",
        "state",
    )

    def __init__(
        self, group_id: str, member_id: str, backoff: Backoff | None = None
    ) -> None:
        self.state: ShareState = ShareState.UNJOINED
        self.member_epoch: int = 0
        self._group_id = group_id
        self._member_id = member_id
        self._backoff = backoff or Backoff(100, 1000)
        self._wanted = frozenset[str]()
        # The names that the coordinator has accepted; None if it knows none.
        self._known: frozenset[str] | None = None
        self._assignment = frozenset[TopicIdPartition]()
        # The assignment of the last `SetAssignment`.
        self._fetching = frozenset[TopicIdPartition]()
        self._was_accepted = False
        self._is_reported = False
        self._interval = 0.0
        self._heartbeat_at = _NEVER
        # From when on a heartbeat has the names, whatever the coordinator knows.
        self._check_at = _NEVER
        self._not_before = -_NEVER
        # When the coordinator has removed the member, unless it accepts another
        # heartbeat; counted from when the last accepted one was sent.
        self._session_end = _NEVER
        self._sends_names = False
        self._tickets = 0
        # Of the heartbeat, and of the request to leave, under way; 0 for none.
        self._ticket = self._leave_ticket = 0
        # Kept after a failure: the coordinator may have received it.
        self._sent: _SentHeartbeat | None = None
        self._failures = 0
        # The lasting refusal that is not believed yet, and since when.
        self._doubted: object = None
        self._doubted_since = _NEVER
        self._out: list[ShareEffect] = []

    def __repr__(self) -> str:
        return (
            f"<ShareMembership {self._group_id!r} {self.state.name} "
            f"epoch={self.member_epoch} | {len(self._assignment)} assigned>"
        )

    @property
    def is_joined(self) -> bool:
        """Whether the group has accepted the member, and has not fenced it since."""
        return self.state is ShareState.STABLE

    @property
    def may_fetch(self) -> bool:
        """Whether the member may fetch: joined, and its session has not ended.

        That the session has ended is noticed by `tick`.
        """
        return self.is_joined and self._session_end != _NEVER

    @property
    def has_ended(self) -> bool:
        """Whether the membership is over: nothing more can happen."""
        return self.state in ENDED

    # ---- the application -------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], now: float) -> Sequence[ShareEffect]:
        """Want these topics; the first call joins. None of them: leave, stay ready."""
        if self.has_ended or self.state is ShareState.LEAVING:
            return ()
        self._wanted = topics
        if topics:
            self._fire(ShareEvent.SUBSCRIBED)
        else:
            was = self.state
            self._fire(ShareEvent.UNSUBSCRIBED)
            if was is not self.state:
                self._leave(now)
        return self._advance(now)

    def close(self, now: float) -> Sequence[ShareEffect]:
        """Leave the group."""
        if self.has_ended or self.state is ShareState.LEAVING:
            return ()
        was, self._wanted = self.state, frozenset()
        self._fire(ShareEvent.CLOSED)
        # One that is unsubscribing has a request to leave under way.
        if was is not ShareState.UNSUBSCRIBING:
            self._leave(now)
        return self._advance(now)

    # ---- time ------------------------------------------------------------------------

    def tick(self, now: float) -> Sequence[ShareEffect]:
        """Do what is due."""
        if now >= self._session_end:
            # Heartbeats go on: if the session of the group is longer, the next one that
            # is accepted continues it. Else the member is fenced.
            self._session_end = _NEVER
            self._sends_names = True
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When `tick` is to be called next."""
        soonest = min(self._session_end, self._next_heartbeat())
        return None if soonest == _NEVER else soonest

    # ---- answers ---------------------------------------------------------------------

    def heartbeat_answered(
        self,
        ticket: int,
        answer: ShareHeartbeatPort,
        assignment: frozenset[TopicIdPartition] | None,
        now: float,
        roll: float,
    ) -> Sequence[ShareEffect]:
        """Take an answer; an assignment of None is unchanged."""
        if ticket == 0 or ticket not in {self._ticket, self._leave_ticket}:
            return ()
        if ticket == self._leave_ticket:
            return self._left(now)
        self._ticket = 0
        if answer.error_code != ErrorCode.NONE:
            self._react(answer, now, roll)
        elif answer.member_epoch <= 0:
            # No broker says so: it would be a member that is about to join or to leave.
            self._retry(now, roll)
        else:
            self._accepted(answer, assignment, now)
        return self._advance(now)

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Sequence[ShareEffect]:
        """Note that a request got no answer."""
        if ticket == 0 or ticket not in {self._ticket, self._leave_ticket}:
            return ()
        if ticket == self._leave_ticket:
            return self._left(now)
        self._ticket = 0
        if error.retriable:
            self._emit(ForgetCoordinator())
            self._retry(now, roll)
        else:
            self._refuse(error, now, roll, is_final=not _is_denied(error))
        return self._advance(now)

    # ---- the meaning of answers ------------------------------------------------------

    def _accepted(
        self,
        answer: ShareHeartbeatPort,
        assignment: frozenset[TopicIdPartition] | None,
        now: float,
    ) -> None:
        sent = self._sent
        assert sent is not None
        self._was_accepted = True
        self._is_reported = False
        self._doubted = None
        self._failures = 0
        self._not_before = now
        self.member_epoch = answer.member_epoch
        self._interval = seconds("heartbeat_interval_ms", answer.heartbeat_interval_ms)
        self._heartbeat_at = sent.at + self._interval
        self._session_end = sent.at + _SESSION
        self._known = sent.wanted
        if self.state is ShareState.JOINING:
            self._fire(ShareEvent.JOINED)
        if assignment is not None:
            self._assignment = assignment

    def _react(self, answer: ShareHeartbeatPort, now: float, roll: float) -> None:
        code = answer.error_code
        asked = reaction(_API, code)
        if asked.refind_coordinator:
            self._emit(ForgetCoordinator())
        # A group that was deleted is created by the join.
        has_lost_group = code == ErrorCode.GROUP_ID_NOT_FOUND and self.member_epoch > 0
        if asked.step in _RESETS or has_lost_group:
            self._fence(now, roll)
        elif asked.retry:
            self._retry(now, roll)
        else:
            is_final = asked.step is ReactionStep.FATAL
            self._refuse(self._error(answer), now, roll, is_final=is_final)

    def _refuse(
        self, error: KafkaError, now: float, roll: float, *, is_final: bool
    ) -> None:
        if not self._was_accepted or (is_final and self._is_believed(error, now)):
            # A group that refuses the heartbeat may have the member all the same.
            if self.member_epoch > 0:
                self._leave(now)
            self._fire(ShareEvent.REFUSED)
            self._emit(EndMembership(error))
            return
        if not self._is_reported:
            self._is_reported = True
            self._emit(ReportError(error))
        self._emit(ForgetCoordinator())
        self._retry(now, roll)

    def _is_believed(self, error: KafkaError, now: float) -> bool:
        code = error.code if isinstance(error, BrokerError) else None
        reason = type(error), code
        if self._doubted != reason:
            self._doubted, self._doubted_since = reason, now
        return now - self._doubted_since >= _BELIEVED_AFTER

    def _error(self, answer: ShareHeartbeatPort) -> KafkaError:
        why = f": {answer.error_message}" if answer.error_message else ""
        text = f"share group {self._group_id!r} refused the heartbeat{why}"
        if answer.error_code in _OTHER_KIND:
            text += "; a group of that name exists, and it is not a share group"
        return broker_error(answer.error_code, text, api=_API, group=self._group_id)

    def _fence(self, now: float, roll: float) -> None:
        # The first rejoin is due at once. Later ones back off, in case the coordinator
        # fences the member again and again.
        delay = self._backoff.delay(self._failures - 1, roll)
        self._not_before = now + (delay if self._failures else 0.0)
        self._failures += 1
        self._forget()
        self._fire(ShareEvent.FENCED)

    def _retry(self, now: float, roll: float) -> None:
        # Whether it was received is unknown, so the next one says everything.
        self._sends_names = True
        self._not_before = now + self._backoff.delay(self._failures, roll)
        self._failures += 1

    def _forget(self) -> None:
        self.member_epoch = 0
        self._assignment = frozenset()
        self._known = None
        self._sent = None
        self._ticket = 0
        self._sends_names = False
        self._session_end = self._heartbeat_at = self._check_at = _NEVER

    # ---- leaving ---------------------------------------------------------------------

    def _leave(self, now: float) -> None:
        # A join without an answer may have been received all the same.
        was_sent = self._sent is not None
        self._forget()
        self._not_before = now
        self._set_fetching()
        if was_sent:
            self._leave_ticket = self._new_ticket()
            self._emit(
                SendShareHeartbeat(
                    self._leave_ticket, self._member_id, _LEAVE, None, self._timeout()
                )
            )

    def _left(self, now: float) -> Sequence[ShareEffect]:
        self._leave_ticket = 0
        return self._advance(now)

    # ---- progress --------------------------------------------------------------------

    def _advance(self, now: float) -> Sequence[ShareEffect]:
        is_leaving = self.state in {ShareState.UNSUBSCRIBING, ShareState.LEAVING}
        if is_leaving and not self._leave_ticket:
            self._fire(ShareEvent.LEAVE_ENDED)
            if self._wanted and not self.has_ended:
                self._fire(ShareEvent.SUBSCRIBED)
        self._set_fetching()
        if now >= self._next_heartbeat():
            self._send_heartbeat(now)
        out = tuple(self._out)
        self._out.clear()
        return out

    def _set_fetching(self) -> None:
        # Before anything is sent: fetching stops at once.
        fetching = self._assignment if self.may_fetch else frozenset()
        if fetching != self._fetching:
            self._fetching = fetching
            self._emit(SetAssignment(fetching))

    def _next_heartbeat(self) -> float:
        if self._ticket or self.state not in HEARTBEATING:
            return _NEVER
        is_due = self.state is ShareState.JOINING or self._known != self._wanted
        if is_due or self._sends_names:
            return self._not_before
        return max(self._heartbeat_at, self._not_before)

    def _send_heartbeat(self, now: float) -> None:
        is_join = self.state is ShareState.JOINING
        is_check = now >= self._check_at or not self._assignment
        has_names = (
            is_join or is_check or self._sends_names or self._known != self._wanted
        )
        if has_names:
            self._check_at = now + _CHECK
        self._ticket = self._new_ticket()
        self._sent = _SentHeartbeat(now, self._wanted)
        self._sends_names = False
        self._emit(
            SendShareHeartbeat(
                ticket=self._ticket,
                member_id=self._member_id,
                member_epoch=0 if is_join else self.member_epoch,
                topics=tuple(sorted(self._wanted)) if has_names else None,
                timeout=_JOIN_TIMEOUT if is_join else self._timeout(),
            )
        )

    def _timeout(self) -> float:
        return max(_TIMEOUT_SECONDS, _TIMEOUT_INTERVALS * self._interval)

    def _new_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _emit(self, effect: ShareEffect) -> None:
        self._out.append(effect)

    def _fire(self, event: ShareEvent) -> None:
        self.state = transition(self.state, event)


def _is_denied(error: KafkaError) -> bool:
    # Whether somebody has to act before the request can succeed, but it can.
    if isinstance(error, BrokerError):  # of the look-up of the coordinator
        is_final = error.code == ErrorCode.INVALID_GROUP_ID
        return not is_final
    return isinstance(error, AuthenticationError)
