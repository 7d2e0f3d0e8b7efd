"""What is locked for a share consumer, and what it decided about it.

The ledger has every acquired range (`kafkaio._records.batch.Acquired`) until each of
its offsets was acknowledged, or lost. It makes the acknowledgements of a request, and
takes the answer. A partition's acknowledgements in one request stand or fall together,
so after 121 (INVALID_RECORD_STATE) they are sent again in halves, until the offsets are
found whose lock is gone. Acknowledgements of ranges whose lock is gone by our clock are
not sent: one of them would void the others. Those whose lock ends soon go apart.

An answer that is lost leaves it open whether the decisions count. They are sent again,
apart from others: 0 says that they count now, and 121 that nothing more can be learnt.

Each offset is in one of these places, and `ShareLedger.locked` counts all of them:

* held: nothing was decided;
* decided: `Acquired` has the decision, and a leader's ``queued`` the lease;
* taken: in one `Group`, which waits in its `_Partition` or is in the plan in flight.

It leaves by exactly one of these ways: confirmed, failed, or lost while it was held.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.reactions import reaction
from kafkaio._machines.share.acks import (
    RENEW as RENEW,
    AckRange as AckRange,
    Group,
    Run,
    sorted_runs,
)
from kafkaio._machines.share.leases import NEVER, Lease, Timetable
from kafkaio._named_tuple import NamedTuple
from kafkaio._records._acquired import RELEASE
from kafkaio._records.batch import Acquired
from kafkaio.errors import AcknowledgeFailed, LockLost, ProtocolError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

#: The most runs of one request. The rest goes with the next.
_MOST_RUNS: Final = 5_000
#: The most offsets that one answer may lock in a partition: there is a byte for each.
_MOST_OFFSETS: Final = 2**24
_LAST_OFFSET: Final = 2**62
_LAST_COUNT: Final = 2**15 - 1
#: Bounds of the duration of a lock, in seconds. Kafka allows up to an hour.
_SHORTEST_LOCK: Final = 0.1
_LONGEST_LOCK: Final = 3_600.0
#: Kafka's default, for an answer without a duration.
_DEFAULT_LOCK: Final = 30.0
#: Locks are renewed after this part of their duration, more or less `_SPREAD`, so that
#: consumers that fetched together do not renew together.
_RENEWED_AFTER: Final = 0.5
_SPREAD: Final = 0.1
#: Locks that are due within this part of their duration are renewed with others.
_RENEWED_WITH: Final = 0.1
#: A lock ends soon, and its decisions go in a request of their own, if it ends within
#: this part of its duration, but not more than so many seconds.
_MARGIN: Final = 0.1
_LONGEST_MARGIN: Final = 1.0
#: Waits between attempts, after an error that may pass.
_BACKOFF: Final = Backoff(50, 1_000)
#: The leader has moved, or has no such partition: it has no locks of it.
_NO_LEADER: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_STATE_EPOCH,
    }
)
#: A leader that does not renew locks refuses so.
_NO_RENEWAL: Final = frozenset(
    {ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION}
)
#: After so many refusals in a row a leader is not asked to renew locks for so many
#: seconds: renewals are a config of the group, which may change.
_REFUSALS: Final = 3
_RENEWS_AGAIN: Final = 60.0
_EXPIRED: Final = "the lock has run out"
_NOT_LOCKED: Final = "the leader says that this consumer has no lock"
_UNKNOWN: Final = "no answer came, so it is unknown whether it counts"


class AcquiredRange(NamedTuple):
    """A range of offsets that a leader says it has acquired."""

    first: int
    last: int
    delivery_count: int


@dataclass(frozen=True, slots=True, eq=False)
class AckPlan:
    """The acknowledgements of one request to one leader.

    Attributes:
        node_id: the leader.
        ranges: by partition, sorted by offset, not overlapping. `acks.batches` makes
            what the request has.
        renews: whether any of them renews a lock, which the request has to say.
        sent_at: when the plan was made: renewed locks count from here.
        groups: what the ledger notes of them.
    """

    node_id: int
    ranges: Mapping[TopicPartition, tuple[AckRange, ...]]
    renews: bool
    sent_at: float
    groups: dict[TopicPartition, Group]


class LedgerListenerPort(Protocol):
    """Is notified about what became of acknowledgements and locks."""

    def notify(self, node_id: int) -> None:
        """Note that there is something to send to a leader, perhaps later."""

    def confirmed(self, acquired: Acquired, ranges: Sequence[AckRange]) -> None:
        """Note that the leader has taken decisions."""

    def failed(self, acquired: Acquired, error: AcknowledgeFailed) -> None:
        """Note that decisions about a range did not count, or that it is unknown."""

    def lost(self, acquired: Acquired, error: LockLost) -> None:
        """Note that records that were held are not locked any more."""

    def renewed(self, acquired: Acquired, first: int, last: int) -> None:
        """Note that locks were renewed; ``acquired.deadline`` is the new one."""

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done when the leader has answered; see `AcquiredListenerPort`.

        The ledger, which is the listener of each range, passes it on.
        """
        ...


class _Partition:
    """One partition at one leader.

    Attributes:
        tp: the partition.
        leases: those with anything open, sorted by offset; they do not overlap.
        groups: what waits to be sent. One of them goes with each request.
    """

    __slots__ = ("_firsts", "groups", "leases", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp: TopicPartition = tp
        self.leases: list[Lease] = []
        self.groups: list[Group] = []
        # The first offsets of the leases: what the list is searched by.
        self._firsts: list[int] = []

    def add(self, lease: Lease) -> None:
        """Add a lease."""
        first = lease.acquired.first
        place = bisect_left(self._firsts, first)
        self._firsts.insert(place, first)
        self.leases.insert(place, lease)

    def remove(self, lease: Lease) -> None:
        """Remove a lease: nothing of it is open."""
        place = bisect_left(self._firsts, lease.acquired.first)
        # After a redelivery there can be two that begin at one offset.
        while self.leases[place] is not lease:
            place += 1
        del self._firsts[place], self.leases[place]

    def overlapping(self, first: int, last: int) -> list[Lease]:
        """Return the leases with any of these offsets open."""
        # Leases overlap where offsets of the older one are not open any more, so that
        # more than one to the left may reach over ``first``.
        end = bisect_right(self._firsts, last)
        return [
            lease
            for lease in self.leases[:end]
            if lease.acquired.last >= first and lease.is_open(first, last)
        ]

    def cut(self, lease: Lease, first: int, last: int) -> list[tuple[Run, Group]]:
        """Take these offsets out of what waits to be sent."""
        found = [
            (run, group)
            for group in self.groups
            for run in group.cut(lease, first, last)
        ]
        if found:
            self.groups = [group for group in self.groups if group.runs]
        return found

    def expired(self, now: float) -> list[tuple[Run, Group]]:
        """Take what waits to be sent and whose lock has ended."""
        found: list[tuple[Run, Group]] = []
        for group in self.groups:
            if group.deadline <= now:
                found += [(run, group) for run in group.runs if run.deadline <= now]
                group.runs = [run for run in group.runs if run.deadline > now]
        self.groups = [group for group in self.groups if group.runs]
        return found

    def take(self, now: float, *, may_renew: bool) -> Group | None:
        """Take the group to send now: the one whose locks end first."""
        for group in self.groups:
            group.drop_stale_renewals()
        self.groups = [group for group in self.groups if group.runs]
        ready = [
            group
            for group in self.groups
            if group.due <= now and (may_renew or group.decisions())
        ]
        if not ready:
            return None
        group = min(ready, key=_deadline)
        self.groups.remove(group)
        renewals = group.renewals()
        if renewals and not may_renew:
            self.groups.append(Group(renewals))
            group.runs = group.decisions()
        return group


class _Leader:
    """One leader.

    Attributes:
        node_id: its id.
        partitions: those with leases.
        queued: leases with decisions that were not taken, in order.
        queued_since: when the first of them was noticed; None for not yet.
        waiting: the partitions with groups.
        renewals: when leases are to be renewed.
        locked: how many offsets are locked as far as is known.
        fading: until when, and how many more: their locks have ended by our clock, and
            end at the leader a little later.
        plan: the plan in flight.
        has_renewed: whether it has renewed locks. Until then renewals go apart.
        refusals: how many renewals of single offsets it has refused in a row.
        renews_from: when it may be asked to renew locks again.
        lock: the duration of its locks, in seconds.
    """

    __slots__ = (
        "fading",
        "has_renewed",
        "lock",
        "locked",
        "node_id",
        "partitions",
        "plan",
        "queued",
        "queued_since",
        "refusals",
        "renewals",
        "renews_from",
        "waiting",
    )

    def __init__(self, node_id: int) -> None:
        self.node_id: int = node_id
        self.partitions: dict[TopicPartition, _Partition] = {}
        self.queued: dict[Lease, None] = {}
        self.queued_since: float | None = None
        self.waiting: dict[TopicPartition, _Partition] = {}
        self.renewals: Timetable = Timetable(_renew_at)
        self.locked: int = 0
        self.fading: list[tuple[float, int]] = []
        self.plan: AckPlan | None = None
        self.has_renewed: bool = False
        self.refusals: int = 0
        self.renews_from: float = -NEVER
        self.lock: float = _DEFAULT_LOCK

    @property
    def margin(self) -> float:
        """Seconds before its end at which a lock ends soon."""
        return min(_MARGIN * self.lock, _LONGEST_MARGIN)

    @property
    def all_locked(self) -> int:
        """Those that are locked, and those that are fading."""
        if not self.fading:
            return self.locked
        return self.locked + sum(count for _, count in self.fading)

    def fade(self, count: int, now: float, slack: float) -> None:
        """Count offsets for so long whose lock has ended by our clock."""
        until = now + slack
        if count and until > now:  # a slack may be too short for the clock
            self.fading.append((until, count))

    def faded(self, now: float) -> bool:
        """Count those no longer whose time is over; return whether there were any."""
        before = len(self.fading)
        self.fading = [each for each in self.fading if each[0] > now]
        return len(self.fading) < before

    def partition(self, tp: TopicPartition) -> _Partition:
        """Return a partition; make it if need be."""
        partition = self.partitions.get(tp)
        if partition is None:
            partition = self.partitions[tp] = _Partition(tp)
        return partition

    def wait(self, tp: TopicPartition, *groups: Group) -> None:
        """Have groups wait to be sent."""
        found = [group for group in groups if group.runs]
        if found:
            partition = self.partition(tp)
            # In front: after a refusal the halves have their turn, halved again at
            # once, so that the fault is found after few requests.
            partition.groups[:0] = found
            self.waiting[tp] = partition


def _renew_at(lease: Lease) -> float:
    return lease.renew_at if lease.open and not lease.renewing else NEVER


def _expires_at(lease: Lease) -> float:
    return lease.expires_at


def _deadline(group: Group) -> float:
    return group.deadline


class ShareLedger:
    """All acquired ranges of one share consumer.

    Times are seconds on the clock of the loop. ``lock`` is the duration of locks as the
    latest answer of a leader gave it, counted from when the request was sent; 0 where
    it gave none.

    Args:
        listener: is notified.
        linger: seconds that a decision waits for others, at most.
        max_processing: seconds for which held offsets are renewed after they were
            handed out, or after they were acquired while they are not. It is exact
            within the time between two renewals.
        jitter: in [0, 1), different in each consumer: spreads renewals.
        clock: tells the time when somebody asks whether a lock has ended; None if only
            `expire` is to end locks.
        defer: called with a range of which something was decided. If it returns True,
            this is not the ledger's thread, and it has `decided` called there. None if
            all is decided in one thread.

    Attributes:
        max_processing: see above; it can be changed.
    """

    __slots__ = (
        "_clock",
        "_defer",
        "_expiries",
        "_jitter",
        "_leaders",
        "_leases",
        "_linger",
        "_listener",
        "max_processing",
    )

    def __init__(
        self,
        listener: LedgerListenerPort,
        *,
        linger: float,
        max_processing: float,
        jitter: float = 0.5,
        clock: Callable[[], float] | None = None,
        defer: Callable[[Acquired], bool] | None = None,
    ) -> None:
        self._listener = listener
        self._clock = clock
        self._defer = defer
        self._linger = linger
        self.max_processing: float = max_processing
        self._jitter = jitter
        self._leaders: dict[int, _Leader] = {}
        self._leases: dict[Acquired, Lease] = {}
        self._expiries = Timetable(_expires_at)

    def __repr__(self) -> str:
        return f"<ShareLedger {self.locked} locked | {len(self._leases)} ranges>"

    @property
    def locked(self) -> int:
        """How many offsets may be locked: held, not answered, or just run out.

        A lock ends at the leader later than by our clock, by no more than the time from
        the request to its answer. It counts for as long.
        """
        return sum(leader.all_locked for leader in self._leaders.values())

    def locked_at(self, node_id: int) -> int:
        """The same for one leader."""
        leader = self._leaders.get(node_id)
        return 0 if leader is None else leader.all_locked

    @property
    def fading(self) -> int:
        """How many of them have run out by our clock."""
        return self.locked - sum(leader.locked for leader in self._leaders.values())

    @property
    def held(self) -> int:
        """How many of them have no decision."""
        return sum(acquired.held for acquired in self._leases)

    @property
    def longest_lock(self) -> float:
        """The longest duration of the locks of any leader, in seconds."""
        locks = [leader.lock for leader in self._leaders.values()]
        return max(locks, default=_DEFAULT_LOCK)

    def can_renew(self, node_id: int, now: float) -> bool:
        """Whether a leader renews locks, as far as is known."""
        leader = self._leaders.get(node_id)
        return leader is None or now >= leader.renews_from

    def decided(self, acquired: Acquired) -> None:
        """Note that there are decisions; see `AcquiredListenerPort`."""
        if self._defer is not None and self._defer(acquired):
            return
        lease = self._leases.get(acquired)
        if lease is not None:
            self._leaders[acquired.node_id].queued[lease] = None
            self._listener.notify(acquired.node_id)

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        """Return what is done with the leader's answer; see `LedgerListenerPort`."""
        return self._listener.acked(acquired, offset)

    def has_ended(self, acquired: Acquired, offset: int) -> bool:
        """Whether a lock has ended by the clock; see `AcquiredListenerPort`."""
        lease = self._leases.get(acquired)
        if lease is None or self._clock is None:
            return False
        deadlines = [deadline for *_, deadline in lease.pieces(offset, offset)]
        return bool(deadlines) and max(deadlines) <= self._clock()

    @property
    def live(self) -> Collection[Acquired]:
        """The ranges of which an offset is held, or has no answer yet."""
        return self._leases.keys()

    # ---- acquiring -------------------------------------------------------------------

    def acquired(
        self,
        node_id: int,
        tp: TopicPartition,
        ranges: Sequence[AcquiredRange],
        *,
        lock: float,
        sent_at: float,
        now: float,
    ) -> tuple[Acquired, ...]:
        """Take over what a leader has acquired.

        Call `answered` first for the acknowledgements that went with the request. What
        is held, and comes again as a later delivery, was freed by the leader: it is
        lost here, and taken over as the new delivery.

        Raises:
            ProtocolError: ranges are reversed, unsorted, overlap each other or what is
                held, or have an impossible count. Nothing was taken over.
        """
        self.expire(now)
        leader = self._leader(node_id)
        _note_lock(leader, lock)
        _check_ranges(tp, ranges)
        if not ranges:
            return ()
        again = _check_overlaps(leader.partition(tp), ranges)
        # A partition has one leader: the others have freed what they had of it.
        for other in self._leaders.values():
            if other is not leader and tp in other.partitions:
                why = f"broker {node_id} leads the partition now"
                self.partition_lost(other.node_id, tp, why, now)
        for lease, each in again:
            self._delivered_again(leader, lease, each)
        partition = leader.partition(tp)
        slack = max(0.0, now - sent_at)
        taken = tuple(
            self._lease(leader, partition, each, sent_at, slack) for each in ranges
        )
        if self._expiries.first() <= now:
            # The answer took longer than its locks last: nothing of it is handed out.
            self.expire(now)
        return taken

    def _lease(
        self,
        leader: _Leader,
        partition: _Partition,
        each: AcquiredRange,
        since: float,
        slack: float,
    ) -> Acquired:
        tp = partition.tp
        acquired = Acquired(tp.topic, tp.partition, *each, leader.node_id, self)
        lease = Lease(acquired, tp, since, leader.lock)
        lease.slack = slack
        self._leases[acquired] = lease
        partition.add(lease)
        leader.locked += lease.open
        lease.renew_at = self._renew_after(since, leader.lock)
        leader.renewals.add(lease)
        leader.renewals.sweep(len(self._leases))
        self._expiries.add(lease)
        self._expiries.sweep(len(self._leases))
        return acquired

    def _delivered_again(
        self, leader: _Leader, lease: Lease, each: AcquiredRange
    ) -> None:
        # Offsets that we thought locked come in a later delivery. A release that had
        # no answer has worked, then.
        for run, group in leader.partition(lease.tp).cut(lease, each.first, each.last):
            if group.in_doubt and run.kind == RELEASE:
                self._confirm(leader, [run])
            elif run.kind != RENEW:
                self._fail(leader, [run], "the leader has delivered it again", LockLost)
        why = "the leader has freed it, and delivered it again"
        self._lose(leader, lease, each.first, each.last, why)

    # ---- planning --------------------------------------------------------------------

    def plan(self, node_id: int, now: float, *, may_renew: bool) -> AckPlan | None:
        """Take everything that is to be sent to a leader now; None for nothing.

        Decisions whose lock has ended are not among it: they have failed. The plan must
        come back: by `answered`, `unanswered` or `refused`, unless the connection is
        lost. Until then there is no other for this leader. There may be more to send
        afterwards, see `next_send`.
        """
        leader = self._leaders.get(node_id)
        if leader is None or leader.plan is not None:
            return None
        self.expire(now)
        may_renew = may_renew and now >= leader.renews_from
        self._gather(leader, now, may_renew=may_renew)
        groups: dict[TopicPartition, Group] = {}
        for tp, partition in list(leader.waiting.items()):
            group = partition.take(now, may_renew=may_renew)
            if group is not None:
                groups[tp] = group
            if not partition.groups:
                del leader.waiting[tp]
        if not groups:
            return None
        for group in groups.values():
            for run in group.renewals():
                run.lease.renewing += 1
        leader.plan = AckPlan(
            node_id,
            {tp: group.ranges() for tp, group in groups.items()},
            any(group.renewals() for group in groups.values()),
            now,
            groups,
        )
        return leader.plan

    def _gather(self, leader: _Leader, now: float, *, may_renew: bool) -> None:
        """Make groups of the decisions and of the renewals that are due."""
        fresh: dict[TopicPartition, list[Run]] = {}
        room = _MOST_RUNS
        while leader.queued and room > 0:
            lease = next(iter(leader.queued))
            runs = _taken(lease, room)
            room -= len(runs)
            fresh.setdefault(lease.tp, []).extend(runs)
            if not lease.acquired.is_queued:
                del leader.queued[lease]
        leader.queued_since = now if leader.queued else None
        renewed = self._due_renewals(leader, now, room) if may_renew else {}
        if leader.has_renewed:
            for tp in fresh.keys() & renewed.keys():
                fresh[tp] += renewed.pop(tp)
        # Until then that may be refused, and void decisions. Those go first.
        for tp, runs in renewed.items():
            leader.wait(tp, Group(sorted_runs(runs)))
        soon = now + leader.margin
        for tp, runs in fresh.items():
            urgent = [run for run in runs if run.deadline <= soon]
            sound = [run for run in runs if run.deadline > soon]
            leader.wait(tp, Group(sorted_runs(urgent)), Group(sorted_runs(sound)))

    def _due_renewals(
        self, leader: _Leader, now: float, room: int
    ) -> dict[TopicPartition, list[Run]]:
        found: dict[TopicPartition, list[Run]] = {}
        if leader.renewals.first() > now:
            return found
        for lease in leader.renewals.due(now + _RENEWED_WITH * leader.lock):
            if room <= 0:
                leader.renewals.add(lease)
                continue
            lease.renew_at = NEVER  # until there is an answer
            runs = [
                Run(start, end, RENEW, deadline, lease)
                for first, last in lease.renewable(now, self.max_processing)
                for start, end, deadline in lease.pieces(first, last)
            ]
            room -= len(runs)
            found.setdefault(lease.tp, []).extend(runs)
        return found

    def next_send(self, node_id: int, now: float, *, may_renew: bool) -> float | None:
        """When a request must be sent to a leader: for decisions, or to renew locks.

        None while a plan is in flight, or if there is nothing to send. The linger of
        decisions begins with the first call that sees them, so call it when notified.
        """
        leader = self._leaders.get(node_id)
        if leader is None or leader.plan is not None:
            return None
        times = [
            group.due
            for partition in leader.waiting.values()
            for group in partition.groups
            if may_renew or group.decisions()
        ]
        # A leader that does not renew has no renewals among its groups.
        if leader.queued:
            if leader.queued_since is None:
                leader.queued_since = now
            # A linger may be longer than a lock.
            linger = min(self._linger, leader.lock / 4)
            times.append(leader.queued_since + linger)
        if may_renew:
            times.append(max(leader.renewals.first(), leader.renews_from))
        soonest = min(times, default=NEVER)
        return None if soonest == NEVER else soonest

    # ---- answers ---------------------------------------------------------------------

    def answered(
        self,
        plan: AckPlan,
        codes: Mapping[TopicPartition, int],
        now: float,
        lock: float,
    ) -> None:
        """Take the answer; a partition without a code counts as one without an answer.

        121: the halves are sent again. Codes that say that the leader has moved, or
        that the partition is gone: lost. Other retriable codes: sent again while the
        lock holds.
        """
        leader = self._returned(plan)
        if leader is None:
            return
        _note_lock(leader, lock)
        for tp, group in plan.groups.items():
            code = codes.get(tp)
            if code is None:
                self._again(leader, tp, group, now, in_doubt=True)
            elif code == ErrorCode.NONE:
                self._accepted(leader, group, plan.sent_at, now)
            elif code == ErrorCode.INVALID_RECORD_STATE:
                self._not_locked(leader, tp, group, now)
            elif code in _NO_LEADER:
                why = str(broker_error(code, "the leader has moved"))
                self._end_renewals(leader, group, NEVER)
                self._fail(leader, group.decisions(), why, LockLost)
                self.partition_lost(leader.node_id, tp, why, now)
            else:
                self._refused(leader, tp, group, code, now)

    def unanswered(self, plan: AckPlan, now: float, *, is_last: bool = False) -> None:
        """Note that no answer will come: it is unknown whether the decisions count.

        They are sent again, apart from others, while their locks hold; with
        ``is_last`` they have failed.
        """
        leader = self._returned(plan)
        if leader is None:
            return
        for tp, group in plan.groups.items():
            if is_last:
                self._end_renewals(leader, group, NEVER)
                self._fail(leader, group.decisions(), _UNKNOWN, AcknowledgeFailed)
            else:
                self._again(leader, tp, group, now, in_doubt=True)

    def refused(self, plan: AckPlan, now: float, code: int) -> None:
        """Note that the whole request was refused with that code, and nothing counts.

        Everything is sent again, after a session that has ended was opened anew; but a
        code that no repetition can change has failed it, unless renewals were the
        reason.
        """
        leader = self._returned(plan)
        if leader is None:
            return
        for tp, group in plan.groups.items():
            if code in _NO_RENEWAL and plan.renews:
                self._end_renewals(leader, group, NEVER)
                self._stop_renewing(leader, NEVER)
                leader.wait(tp, Group(group.decisions(), in_doubt=group.in_doubt))
            else:
                self._refused(leader, tp, group, code, now)

    def _accepted(
        self, leader: _Leader, group: Group, sent_at: float, now: float
    ) -> None:
        renewed = group.renewals()
        if renewed:
            leader.has_renewed, leader.refusals = True, 0
            deadline = sent_at + leader.lock
            for run in renewed:
                run.lease.renewed(run.first, run.last, deadline)
                run.lease.slack = max(run.lease.slack, now - sent_at)
                self._release_lost(leader, run, sent_at, now)
            self._end_renewals(leader, group, self._renew_after(sent_at, leader.lock))
            for run in renewed:
                self._listener.renewed(run.lease.acquired, run.first, run.last)
        self._confirm(leader, group.decisions())

    def _release_lost(
        self, leader: _Leader, run: Run, since: float, now: float
    ) -> None:
        # The answer came after the end of the lock by our clock. What was lost then is
        # locked for as long again, and nobody works on it.
        partition = leader.partition(run.lease.tp)
        count = run.lease.acquired.delivery_count
        for first, last in run.lease.lost(run.first, run.last):
            if not partition.overlapping(first, last):
                each = AcquiredRange(first, last, count)
                acquired = self._lease(leader, partition, each, since, now - since)
                acquired.decide_range(first, last, RELEASE)

    def _refused(
        self, leader: _Leader, tp: TopicPartition, group: Group, code: int, now: float
    ) -> None:
        asked = reaction(apis.SHARE_ACKNOWLEDGE, code)
        if code in _NO_RENEWAL and group.renewals():
            self._end_renewals(leader, group, NEVER)
            self._stop_renewing(leader, NEVER)
            leader.wait(tp, Group(group.decisions(), in_doubt=group.in_doubt))
        elif asked.retry or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._again(leader, tp, group, now)
        else:
            # The records stay locked for as long as the lock lasts.
            self._end_renewals(leader, group, NEVER)
            why = str(broker_error(code, "the leader refused it", topic=tp.topic))
            self._fail(leader, group.decisions(), why, AcknowledgeFailed)

    def _stop_renewing(self, leader: _Leader, until: float) -> None:
        # The leader renews no locks: those that wait to be renewed run out.
        leader.renews_from = until
        leader.has_renewed, leader.refusals = False, 0
        for tp, partition in list(leader.waiting.items()):
            for each in partition.groups:
                each.runs = each.decisions()
            partition.groups = [each for each in partition.groups if each.runs]
            if not partition.groups:
                del leader.waiting[tp]

    def _again(
        self,
        leader: _Leader,
        tp: TopicPartition,
        group: Group,
        now: float,
        *,
        in_doubt: bool = False,
    ) -> None:
        # The first attempt is repeated at once: most often a session has ended.
        wait = _BACKOFF.delay(group.tries - 1, self._jitter) if group.tries else 0.0
        self._end_renewals(leader, group, now + wait)
        again = Group(
            group.decisions(),
            due=now + wait,
            tries=group.tries + 1,
            in_doubt=in_doubt or group.in_doubt,
        )
        leader.wait(tp, again)

    def _not_locked(
        self, leader: _Leader, tp: TopicPartition, group: Group, now: float
    ) -> None:
        # 121: the lock of some offset is gone, and nothing of the group counts.
        self._end_renewals(leader, group, NEVER)
        # What has run out meanwhile needs no renewal.
        is_single = group.is_single
        group.drop_stale_renewals()
        if not group.runs:
            return
        if group.in_doubt:
            # If it counted before, that would be the answer, too. All of it went in one
            # request, so all of it did or did not.
            self._fail(leader, group.decisions(), _UNKNOWN, AcknowledgeFailed)
        elif not group.is_single:
            leader.wait(tp, *group.halves())
        elif not is_single:
            leader.wait(tp, group)  # the fault may have been with the others
        elif group.renewals():
            # Kafka also says so if the group's config forbids renewals, so it is no
            # proof that the lock is gone. It is not renewed, and the clock will tell.
            leader.refusals += 1
            if leader.refusals >= _REFUSALS:
                self._stop_renewing(leader, now + _RENEWS_AGAIN)
        else:
            self._fail(leader, group.runs, _NOT_LOCKED, LockLost)

    # ---- losses ----------------------------------------------------------------------

    def connection_lost(self, node_id: int, why: str, now: float) -> None:
        """Note that the leader has freed all locks: its connection is gone."""
        leader = self._leaders.get(node_id)
        if leader is None:
            return
        for tp in list(leader.partitions):
            self.partition_lost(node_id, tp, why, now)
        leader.plan = None
        leader.fading.clear()

    def partition_lost(
        self, node_id: int, tp: TopicPartition, why: str, now: float
    ) -> None:
        """Note that a leader has freed the locks of a partition: it leads no more."""
        del now
        leader = self._leaders.get(node_id)
        partition = None if leader is None else leader.partitions.get(tp)
        if leader is None or partition is None:
            return
        in_flight = leader.plan.groups.pop(tp, None) if leader.plan else None
        if in_flight is not None:
            self._end_renewals(leader, in_flight, NEVER)
            self._fail(leader, in_flight.decisions(), _UNKNOWN, AcknowledgeFailed)
        for lease in list(partition.leases):
            self._lose(leader, lease, lease.acquired.first, lease.acquired.last, why)

    def expire(self, now: float) -> None:
        """Note the locks that have ended by the clock."""
        for leader in self._leaders.values():
            if leader.fading:
                self._fade(leader, now)
            for partition in list(leader.waiting.values()):
                for run, group in partition.expired(now):
                    before = leader.locked
                    self._fail_waiting(leader, run, group, _EXPIRED)
                    leader.fade(before - leader.locked, now, run.lease.slack)
                if not partition.groups:
                    leader.waiting.pop(partition.tp, None)
        for lease in self._expiries.due(now):
            leader = self._leaders[lease.acquired.node_id]
            before = leader.locked
            for first, last in lease.expired(now):
                self._lose(leader, lease, first, last, _EXPIRED)
            leader.fade(before - leader.locked, now, lease.slack)
            lease.drop_expired(now)
            self._expiries.add(lease)

    def _fade(self, leader: _Leader, now: float) -> None:
        if leader.faded(now):
            # There is room for all, not only where something was locked.
            for node_id in self._leaders:
                self._listener.notify(node_id)

    def next_expiry(self) -> float | None:
        """When `expire` is to be called next."""
        waiting = [
            group.deadline
            for leader in self._leaders.values()
            for partition in leader.waiting.values()
            for group in partition.groups
        ]
        for leader in self._leaders.values():
            if leader.fading:
                waiting += [until for until, _ in leader.fading]
        soonest = min(self._expiries.first(), min(waiting, default=NEVER))
        return None if soonest == NEVER else soonest

    def release_all(self) -> None:
        """Release everything that is held: the consumer closes."""
        for acquired in list(self._leases):
            acquired.decide_range(acquired.first, acquired.last, RELEASE)

    def _lose(
        self, leader: _Leader, lease: Lease, first: int, last: int, why: str
    ) -> None:
        # All of these offsets that are open, and not in flight.
        acquired, tp = lease.acquired, lease.tp
        partition = leader.partition(tp)
        for run, group in partition.cut(lease, first, last):
            self._fail_waiting(leader, run, group, why)
        if lease in leader.queued:
            runs = Group(_taken(lease, len(acquired.states)))
            for run in runs.cut(lease, first, last):
                self._fail(leader, [run], why, LockLost)
            leader.queued.pop(lease, None)
            leader.wait(tp, runs)
        for start, end in acquired.held_runs(first, last):
            acquired.lose(start, end)
            acquired.lost_because = why
            self._settle(leader, lease, end - start + 1)
            self._listener.lost(
                acquired,
                LockLost(
                    _sentence(tp, start, end, f"{why}: delivered again to the group"),
                    topic_partition=tp,
                    first_offset=start,
                    last_offset=end,
                ),
            )

    def _fail_waiting(self, leader: _Leader, run: Run, group: Group, why: str) -> None:
        if run.kind == RENEW:
            return  # the offsets are held, and lost by themselves
        if group.in_doubt:
            self._fail(leader, [run], _UNKNOWN, AcknowledgeFailed)
        else:
            self._fail(leader, [run], why, LockLost)

    # ---- ends ------------------------------------------------------------------------

    def _confirm(self, leader: _Leader, runs: Sequence[Run]) -> None:
        by_lease: dict[Lease, list[AckRange]] = {}
        for run in runs:
            run.lease.acquired.confirm(run.first, run.last)
            by_lease.setdefault(run.lease, []).append(run.as_range())
            self._settle(leader, run.lease, run.size)
        for lease, ranges in by_lease.items():
            self._listener.confirmed(lease.acquired, ranges)

    def _fail(
        self,
        leader: _Leader,
        runs: Sequence[Run],
        why: str,
        kind: type[AcknowledgeFailed],
    ) -> None:
        for run in runs:
            acquired, tp = run.lease.acquired, run.lease.tp
            if kind is LockLost:
                acquired.lose(run.first, run.last)
                acquired.lost_because = why
            else:
                acquired.fail(run.first, run.last)
            self._settle(leader, run.lease, run.size)
            self._listener.failed(
                acquired,
                kind(
                    _sentence(tp, run.first, run.last, f"not acknowledged: {why}"),
                    topic_partition=tp,
                    first_offset=run.first,
                    last_offset=run.last,
                ),
            )

    def _settle(self, leader: _Leader, lease: Lease, count: int) -> None:
        lease.open -= count
        leader.locked -= count
        if lease.open:
            return
        del self._leases[lease.acquired]
        leader.queued.pop(lease, None)
        partition = leader.partition(lease.tp)
        partition.remove(lease)
        if not partition.leases:
            leader.partitions.pop(lease.tp)
            leader.waiting.pop(lease.tp, None)

    def _end_renewals(self, leader: _Leader, group: Group, renew_at: float) -> None:
        # The runs of a group in flight that renew locks are not in flight any more.
        for run in group.renewals():
            lease = run.lease
            lease.renewing -= 1
            lease.renew_at = min(lease.renew_at, renew_at)
            if not lease.renewing:
                leader.renewals.add(lease)
                self._expiries.add(lease)

    def _renew_after(self, since: float, lock: float) -> float:
        spread = _SPREAD * (2 * self._jitter - 1)
        return since + lock * (_RENEWED_AFTER + spread)

    def _returned(self, plan: AckPlan) -> _Leader | None:
        leader = self._leaders[plan.node_id]
        if leader.plan is not plan:
            return None  # the connection was lost meanwhile
        leader.plan = None
        return leader

    def _leader(self, node_id: int) -> _Leader:
        leader = self._leaders.get(node_id)
        if leader is None:
            leader = self._leaders[node_id] = _Leader(node_id)
        return leader


def _taken(lease: Lease, most: int) -> list[Run]:
    """Take over decisions of a lease, in runs with one deadline each."""
    return [
        Run(start, end, decision, deadline, lease)
        for first, last, decision in lease.acquired.take_decisions(most)
        for start, end, deadline in lease.pieces(first, last)
    ]


def _note_lock(leader: _Leader, lock: float) -> None:
    if lock > 0:
        leader.lock = min(max(lock, _SHORTEST_LOCK), _LONGEST_LOCK)


def _check_ranges(tp: TopicPartition, ranges: Sequence[AcquiredRange]) -> None:
    after, total = 0, 0
    for first, last, count in ranges:
        if not after <= first <= last <= _LAST_OFFSET:
            raise _broken(tp, f"offsets {first} to {last} after {after - 1}")
        if not 0 < count <= _LAST_COUNT:
            raise _broken(tp, f"offsets {first} to {last} as delivery {count}")
        after = last + 1
        total += last - first + 1
        if total > _MOST_OFFSETS:
            raise _broken(tp, f"more than {_MOST_OFFSETS} offsets at once")


def _check_overlaps(
    partition: _Partition, ranges: Sequence[AcquiredRange]
) -> list[tuple[Lease, AcquiredRange]]:
    """Return what was locked before and comes again as a later delivery."""
    found = [
        (lease, each)
        for each in ranges
        for lease in partition.overlapping(each.first, each.last)
    ]
    for lease, (first, last, count) in found:
        if count <= lease.acquired.delivery_count:
            before = f"{lease.acquired.first} to {lease.acquired.last}"
            raise _broken(
                partition.tp,
                f"offsets {first} to {last} as delivery {count}, while {before} are "
                f"locked as delivery {lease.acquired.delivery_count}",
            )
    return found


def _broken(tp: TopicPartition, what: str) -> ProtocolError:
    return ProtocolError(
        f"the leader of {tp.topic}-{tp.partition} says it has locked {what}"
    )


def _sentence(tp: TopicPartition, first: int, last: int, what: str) -> str:
    offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
    return f"{tp.topic}-{tp.partition}, {offsets}: {what}"
