"""The interface of a member's state machine, whichever group protocol it speaks.

There are two implementations: ``classic.membership.ClassicMembership`` and
``kip848.membership.Kip848Membership``. The task that runs a member, and everything
else outside these two modules, uses `Membership` alone.

A machine has no clock, no random numbers and no I/O. It is given inputs (a call of the
application, the time, an answer of the coordinator, new metadata) and returns effects:
what its caller has to do, in order (see ``effects``).

The theory of both machines: an input changes only the facts that it concerns. Then
`Membership._advance` takes every step that has become possible, until the state no
longer changes. No order of inputs can therefore leave a member stuck between two
states.

What a coordinator refuses has three ends (`kafkaio._machines.reactions`). A passing
reason is not reported: the request is sent again. What only somebody else can change (a
right that is missing, a group that is full, an error that the client does not know) is
raised from the application's next call, and the request is sent again as well; if no
request is accepted for the time of a session, everything is lost, because the
coordinator has removed the member by then. What no repetition can change ends the
membership: the member leaves, and has to be replaced. But a member that was accepted
once had a request without that fault. One such answer can be a bad one, so it is
reported, the request is repeated, and the answer is believed only if it stays the same
for some seconds (`_is_final`).

Every request gets a ticket, which comes back with its answer. A machine keeps the
tickets of the answers that it still needs and ignores all others, so a late answer
cannot change anything.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import ClassVar, Final, TypeAlias
from uuid import UUID

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.fence import Fence
from kafkaio._machines.membership.heartbeat import PollTimer
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.ledger import Claim, RevokeLedger
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio.errors import AuthenticationError, BrokerError, KafkaError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

Effects: TypeAlias = tuple[fx.Effect, ...]
NEVER: Final = float("inf")
#: Seconds for which a member that was accepted is refused for the same lasting reason
#: before it believes that.
_BELIEVED_AFTER: Final = 10.0
#: Error codes that apply to members with a group_instance_id alone.
_OF_STATIC: Final = frozenset(
    {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}
)


class Membership(ABC):
    """One consumer's membership in a group.

    Every method that takes ``now`` returns the effects, in order. Times are
    seconds of any monotonic clock. ``roll`` is a random number in [0, 1), from which
    back-off gets its jitter.

    Args:
        max_poll_interval: longest time between two polls, in seconds.

    Attributes:
        accepted_at: when the coordinator last accepted a request.
        member_id: the id of the member at the coordinator; empty without one.
        ledger: the partitions that the member owns, and how far the revocation of
            each has come.
        matches_on_client: whether the subscribed topics are those that the client
            matches by a pattern. The classic protocol then has metadata refreshed
            before each JoinGroup; KIP-848 ignores it.
    """

    #: Name of the group protocol, as in the option ``group_protocol``.
    group_protocol: ClassVar[str]
    #: Whether the coordinator tells the member its own epoch (KIP-848) rather than the
    #: generation of the whole group. OffsetFetch is fenced by an epoch alone.
    uses_member_epoch: ClassVar[bool]

    __slots__ = (
        "_closing_ticket",
        "_denied_until",
        "_doubted",
        "_doubted_since",
        "_out",
        "_poll",
        "_tickets",
        "_withheld",
        "accepted_at",
        "ledger",
        "matches_on_client",
        "member_id",
    )

    def __init__(self, max_poll_interval: float) -> None:
        self.accepted_at: float = -NEVER
        self.member_id: str = ""
        self.ledger: RevokeLedger = RevokeLedger()
        self.matches_on_client: bool = False
        self._poll = PollTimer(max_poll_interval)
        self._tickets = 0
        # Ticket of the request that leaves the group permanently, 0 for none.
        self._closing_ticket = 0
        # When the coordinator has removed this member, whose requests it refuses; NEVER
        # while it accepts them.
        self._denied_until = NEVER
        # The lasting refusal that is not believed yet, and since when it is reported.
        self._doubted: object = None
        self._doubted_since = NEVER
        # Partitions that no member may own until they are removed from this set.
        self._withheld = frozenset[TopicPartition]()
        self._out: list[fx.Effect] = []

    # ---- reading ---------------------------------------------------------------------

    @property
    @abstractmethod
    def state(self) -> Enum:
        """The member's state, by the table of its protocol."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The generation id, or the member epoch where `uses_member_epoch`.

        -1 while the member belongs to no generation. Commits are fenced by it.
        """

    @property
    @abstractmethod
    def topics(self) -> frozenset[str] | None:
        """The names that the application subscribes to; None without a subscription."""

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Whether the membership is over: nothing more can happen."""

    @property
    def is_leader(self) -> bool:
        """Whether this member computes the assignment of the current generation."""
        return False

    @property
    def group_topics(self) -> frozenset[str]:
        """The topics whose partitions this member has to watch as the group's leader.

        A change of their metadata is passed to `metadata_changed`.
        """
        return frozenset()

    @property
    def is_joining(self) -> bool:
        """Whether the answer to a JoinGroup or SyncGroup decides on the generation.

        A commit whose generation was refused waits for it.
        """
        return False

    @property
    @abstractmethod
    def free(self) -> Mapping[TopicPartition, int]:
        """The withheld partitions that no member owns.

        Each has a negative number, which differs from the number that it has when it
        is free again after another member may have owned it.
        """

    @property
    @abstractmethod
    def ignores_withholding(self) -> bool:
        """Whether the group's assignor ignores `withhold`, so a rewind cannot work."""

    def fence(self, partitions: Collection[TopicPartition]) -> Fence:
        """Return the fence of a commit of these partitions, owned or `free`."""
        return Fence(self.ledger, lambda: self.free, partitions)

    @property
    @abstractmethod
    def _is_static(self) -> bool:
        """Whether the member has a group_instance_id."""

    @abstractmethod
    def next_deadline(self) -> float | None:
        """When `tick` is due; None if only an input can change anything."""

    @property
    @abstractmethod
    def _revoke_timeout(self) -> float:
        """How long a revocation may take after it was requested, in seconds."""

    @abstractmethod
    def awaits(self, ticket: int) -> bool:
        """Whether the answer to that request still matters."""

    # ---- the application -------------------------------------------------------------

    @abstractmethod
    def subscribe(self, topics: frozenset[str], now: float) -> Effects:
        """Read these topics from now on; the set may be empty."""

    def subscribe_pattern(
        self, pattern: re.Pattern[str], now: float, *, exclude_internal: bool
    ) -> Effects | None:
        """Have the coordinator match a pattern against the topics, now and later.

        Returns:
            None if it cannot: the client has to match by itself, and `subscribe` to
            the names that it finds.
        """
        del pattern, now, exclude_internal
        return None

    @abstractmethod
    def unsubscribe(self, now: float) -> Effects:
        """Read nothing: release all partitions, then leave the group."""

    @abstractmethod
    def close(self, now: float) -> Effects:
        """Release all partitions, leave the group, and end."""

    @abstractmethod
    def polled(self, now: float) -> Effects:
        """The application has polled: the poll timer starts again."""

    @abstractmethod
    def enforce_rebalance(self, reason: str, now: float) -> Effects:
        """Ask for a rebalance without need (KIP-568)."""

    def step_taken(self, now: float) -> Effects:
        """The application asks for more records: reported revocations may complete."""
        if not self.ledger.pending:
            return ()  # called for every record: the usual case does nothing else
        self.ledger.step()
        return self._advance(now)

    def release(self, partitions: Collection[TopicPartition], now: float) -> Effects:
        """The application holds no records of these: revoke them without a step."""
        self.ledger.release(partitions)
        return self._advance(now)

    def unhold(self, claims: Collection[Claim], now: float) -> Effects:
        """End one hold of each of these; a revocation that waited for it goes on."""
        self.ledger.unhold(claims)
        return self._advance(now)

    def lose_all(self, now: float) -> Effects:
        """Lose everything still owned, held or not, so that the member can leave."""
        self._lose()
        return self._advance(now)

    @abstractmethod
    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """Let no member own these, until a later call leaves them out.

        Members that own them are asked to release them as in any rebalance. Once a
        partition is `free`, its offset can be committed, and its next owner begins
        there.
        """

    # ---- time and the cluster --------------------------------------------------------

    @abstractmethod
    def tick(self, now: float) -> Effects:
        """Take the steps that are due."""

    def metadata_changed(self, layout: Layout, now: float) -> Effects:
        """New metadata of at least `group_topics` has come."""
        del layout, now
        return ()

    def topics_refreshed(self, ticket: int, now: float) -> Effects:
        """RefreshTopics has ended; what it found was passed to `subscribe` before."""
        del ticket, now
        return ()

    def topics_resolved(self, ticket: int, layout: Layout, now: float) -> Effects:
        """The answer to ResolveTopics; unknown topics are left out of the layout."""
        del ticket, layout, now
        return ()

    def topics_named(
        self, names: Mapping[UUID, str], now: float, roll: float
    ) -> Effects:
        """The answer to NameTopics; unknown ids are left out."""
        del names, now, roll
        return ()

    @abstractmethod
    def revoke_ended(
        self, claims: tuple[Claim, ...], now: float, *, in_time: bool
    ) -> Effects:
        """The commit and the callback of a Revoke have ended.

        Args:
            claims: the assignments of the Revoke.
            now: the time.
            in_time: False if its deadline cut it short; the partitions are then lost.
        """

    # ---- answers ---------------------------------------------------------------------

    @abstractmethod
    def commit_refused(
        self, code: int, identity: tuple[str, int], now: float, roll: float
    ) -> Effects:
        """The coordinator refused an OffsetCommit or OffsetFetch.

        Args:
            code: Kafka's error code.
            identity: the member id and generation of the request.
            now: the time.
            roll: a random number in [0, 1).
        """

    def restore_generation(self) -> bool:
        """A commit under the present generation was refused: was it never completed?

        Returns:
            Whether the member is back at an older generation. The commit can be retried
            under it.
        """
        return False

    def leave_ended(self, ticket: int, now: float) -> Effects:
        """The request that leaves the group was answered, or has failed."""
        if ticket != self._closing_ticket:
            return ()
        self._left(now)
        return self._advance(now)

    def request_failed(
        self, ticket: int, error: KafkaError, now: float, roll: float
    ) -> Effects:
        """A request had no answer, or no coordinator was found for it."""
        if ticket == self._closing_ticket != 0:
            return self.leave_ended(ticket, now)
        if not self.awaits(ticket):
            return ()
        is_denied = _is_denied(error)
        if not is_denied and not error.retriable:
            is_denied = not self._is_final(error, now)
        if is_denied:
            # The application learns of it. The place in the group is not lost before
            # the session ends: the credentials or rights may be put right until then.
            self._deny(error, now)
        if error.retriable or is_denied:
            self._emit(fx.ForgetCoordinator())
            self._retry_request(ticket, now, roll)
        else:
            self._refused(error, now)
        return self._advance(now)

    # ---- the part of each protocol ---------------------------------------------------

    @abstractmethod
    def _left(self, now: float) -> None:
        """The member has left the group permanently."""

    @abstractmethod
    def _session_end(self, now: float) -> float:
        """When the coordinator removes this member, if it accepts no request any more.

        It counts from the last request that it accepted, or from ``now`` if there was
        none.
        """

    @abstractmethod
    def _retry_request(self, ticket: int, now: float, roll: float) -> None:
        """A request failed for a passing reason: send it again later."""

    @abstractmethod
    def _refused(self, error: KafkaError, now: float) -> None:
        """A request failed permanently: end the membership."""

    @abstractmethod
    def _proceed(self, now: float) -> None:
        """Leave the present state if nothing prevents it."""

    @abstractmethod
    def _send_due(self, now: float) -> None:
        """Send the heartbeat, or the other sign of life, that is due."""

    # ---- the part of both protocols --------------------------------------------------

    def _advance(self, now: float) -> Effects:
        state: Enum | None = None
        while state is not self.state:
            state = self.state
            self._begin_revokes()
            self._proceed(now)
        self._send_due(now)
        return self._take_effects()

    def _deny(self, error: KafkaError, now: float) -> None:
        self._emit(fx.ReportError(error))
        self._denied_until = min(self._denied_until, self._session_end(now))

    def _is_final(self, error: KafkaError, now: float) -> bool:
        """Whether a refusal that no repetition can change is believed."""
        code = error.code if isinstance(error, BrokerError) else None
        if self.topics is None:
            return True  # the member is leaving anyway
        if code in _OF_STATIC and not self._is_static:
            return False
        if code == ErrorCode.FENCED_INSTANCE_ID or self.accepted_at == -NEVER:
            return True
        reason = type(error), code
        if self._doubted != reason:
            self._doubted, self._doubted_since = reason, now
        return now - self._doubted_since >= _BELIEVED_AFTER

    def _has_no_doubt(self) -> None:
        self._doubted = None

    def _removal_at(self) -> float:
        # When a session has passed in which nothing was accepted.
        return self._denied_until

    def _has_been_removed(self, now: float) -> bool:
        # True once.
        if now < self._removal_at():
            return False
        self._denied_until = NEVER
        return True

    def _request_all(self, now: float) -> None:
        # Revocations requested before this need no further step. Those that are only
        # requested now wait for `release`: the caller first tells all listeners, which
        # may take a hold.
        self.ledger.leave()
        self._request(self.ledger.owned, now, is_leaving=True)

    def _request(
        self,
        partitions: Collection[TopicPartition],
        now: float,
        *,
        is_leaving: bool = False,
    ) -> None:
        deadline = now + self._revoke_timeout
        if requested := self.ledger.request(partitions, deadline):
            self._emit(fx.RequestRevoke(requested, deadline, is_leaving))

    def _begin_revokes(self) -> None:
        claims, deadline = self.ledger.begin()
        if claims:
            self._emit(fx.Revoke(claims, deadline))

    def _complete_revokes(self, claims: tuple[Claim, ...], *, in_time: bool) -> None:
        gone = self.ledger.complete(claims)
        if gone and not in_time:
            self._emit(fx.Lose(gone))

    def _expire_revokes(self, now: float) -> None:
        if lost := self.ledger.expire(now):
            self._emit(fx.Lose(lost))

    def _lose(self) -> None:
        if lost := self.ledger.lose():
            self._emit(fx.Lose(lost))

    def _new_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _emit(self, effect: fx.Effect) -> None:
        self._out.append(effect)

    def _take_effects(self) -> Effects:
        out = tuple(self._out)
        self._out.clear()
        return out


#: Errors that end a group's look-up for good; others of that API are about
#: transactions.
_GROUP_REFUSALS: Final = frozenset({ErrorCode.INVALID_GROUP_ID})


def _is_denied(error: KafkaError) -> bool:
    # Whether somebody has to act before the request can succeed, but it can.
    if isinstance(error, BrokerError):  # of the look-up of the coordinator
        found = reaction(apis.FIND_COORDINATOR, error.code)
        is_final = found.step is ReactionStep.FATAL and error.code in _GROUP_REFUSALS
        return not found.retry and not is_final
    return isinstance(error, AuthenticationError)
