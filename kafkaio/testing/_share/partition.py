"""A share partition: which member holds which records of a partition, for one group.

A pure state machine on the side of the partition's leader. Time is an argument of its
methods. The leader reads batches from its log and lets a member acquire records of them
(`SharePartition.acquire`); the member acknowledges them, or its lock ends.

The records before ``start`` are done with. From ``start`` to ``frontier`` records are
in flight: delivered at least once, or skipped. From ``frontier`` on none was ever read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Final, TypeAlias

from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._share.inflight import NOBODY, Delivery, InFlight, RecordState

#: The lowest limit of deliveries at which the last one comes alone.
_LEAST_ALONE: Final = 3
#: The lowest number of deliveries from which on fewer records come at once.
_LEAST_THROTTLED: Final = 2
_NO_RENEWAL: Final = "Renewing acquisition locks is not enabled for the group."


class AckType(IntEnum):
    """The types of acknowledgements, by Kafka's numbers."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AckBatch(NamedTuple):
    """The acknowledgement of a range: one type for all offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def type_of(self, offset: int) -> AckType:
        """Return the type for an offset."""
        many = len(self.types) > 1
        return AckType(self.types[offset - self.first if many else 0])


#: Acknowledgements that are right: first offset, last offset, delivery, type.
Decisions: TypeAlias = list[tuple[int, int, Delivery, AckType]]


class AcquiredRange(NamedTuple):
    """Records that a member holds now, and how often they were delivered."""

    first: int
    last: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """What the group's configs say.

    Attributes:
        lock_duration: seconds.
        delivery_limit: how often a record is delivered at most.
        max_locks: the most records in flight.
        may_renew: whether members may renew their locks.
    """

    lock_duration: float = 30.0
    delivery_limit: int = 5
    max_locks: int = 2000
    may_renew: bool = True

    @property
    def throttled_from(self) -> int:
        """The number of deliveries from which on fewer records come at once."""
        return max(_LEAST_THROTTLED, -(-self.delivery_limit // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquire:
    """What a member asks for.

    Attributes:
        member: its id.
        max_records: the most records; a soft limit unless it is exact.
        batch_size: where to divide what is acquired, at the borders of batches.
        is_exact: whether single records are acquired, and never more than asked for
            (``record_limit``), or else whole batches (``batch_optimized``).
    """

    member: str
    max_records: int
    batch_size: int = 2**31 - 1
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was read from the log.

    Attributes:
        offset: where the reading began.
        batches: first and last offset of each batch.
        aborted: those of aborted transactions, which the group must not see.
    """

    offset: int
    batches: Sequence[tuple[int, int]]
    aborted: Sequence[tuple[int, int]] = ()


class DeadRecords(NamedTuple):
    """Records that a member rejected, or that were delivered too often."""

    first: int
    last: int
    deliveries: int
    is_rejected: bool


@dataclass(frozen=True, slots=True)
class ShareImage:
    """What is kept of a share partition, for the next leader.

    Locks are not kept. ``runs`` has first offset, last offset, state and number of
    deliveries of the offsets that ever changed their state otherwise; the others from
    ``start`` on count as never delivered. A start of -1 is not known yet.
    """

    start: int
    runs: tuple[tuple[int, int, RecordState, int], ...] = ()

    @property
    def completed(self) -> int:
        """The number of records from the start on that are done with."""
        return sum(
            last - max(first, self.start) + 1
            for first, last, state, _ in self.runs
            if state.is_final and last >= self.start
        )


class SharePartition:
    """The deliveries of a partition to one group.

    Attributes:
        limits: the group's configs; may be replaced at any time.
        start: the first offset that is not done with.
        frontier: the first offset that was never read.
        dead: records that were rejected or delivered too often; the owner takes them.
        kept: what is kept for the next leader; another object after each change.
    """

    def __init__(self, image: ShareImage, limits: ShareLimits) -> None:
        self.limits = limits
        self.start: int = image.start
        self.frontier: int = image.start
        self.dead: list[DeadRecords] = []
        self.kept: ShareImage = image
        self._ranges: list[InFlight] = []
        for first, last, state, count in image.runs:
            # What lies between was acquired and never acknowledged.
            if first > self.frontier:
                self._add(self.frontier, first - 1, Delivery())
            self._add(first, last, Delivery(state, count))
        self._advance()

    # ---- looking -----------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """Where to read: the first record that can be acquired."""
        for one in self._ranges:
            for first, _, delivery in one.runs():
                if delivery.state is RecordState.AVAILABLE:
                    return first
        return self.frontier

    @property
    def can_acquire(self) -> bool:
        """Whether there is room, or something to acquire again."""
        is_full = self.frontier - self.start >= self.limits.max_locks
        return not is_full or self.next_offset != self.frontier

    @property
    def deadline(self) -> float:
        """When the next lock ends; infinity for none."""
        return min((one.deadline for _, _, one in self._deliveries()), default=inf)

    def locks(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield first offset, last offset and delivery of what members hold."""
        for first, last, delivery in self._deliveries():
            if delivery.state is RecordState.ACQUIRED:
                yield first, last, delivery

    def states(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield first offset, last offset and delivery of all that is in flight."""
        return self._deliveries()

    def _deliveries(self) -> Iterator[tuple[int, int, Delivery]]:
        for one in self._ranges:
            yield from one.runs()

    # ---- acquiring ---------------------------------------------------------------

    def acquire(self, ask: Acquire, read: Fetched, now: float) -> list[AcquiredRange]:
        """Lock records of what was read for a member.

        With a limit of three deliveries or more, the last delivery of a record comes
        alone; from half the limit on, half as many records come at once each time, so
        that one bad record does not take a whole batch with it.
        """
        if not read.batches or ask.max_records <= 0:
            return []
        first, last = read.batches[0][0], read.batches[-1][1]
        room = min(ask.max_records, self.limits.max_locks - self.frontier + self.start)
        if room <= 0:
            # Full: only what is in flight already can be acquired, again.
            if read.offset >= self.frontier:
                return []
            room = min(ask.max_records, self.frontier - read.offset)
            last = min(last, self.frontier - 1)
        self._archive_missing(read.offset, first)
        known = self._overlapping(first, last)
        lock = _Lock(ask.member, now + self.limits.lock_duration)
        taken: list[AcquiredRange] = []
        left = room
        for one in known:
            if left <= 0:
                break
            left = self._acquire_known(one, (first, last), ask, lock, taken, left, room)
        first_new = known[-1].last + 1 if known else first
        if left > 0 and first_new <= last:
            taken += self._acquire_new(first_new, last, ask, lock, read.batches, left)
        for borders in read.aborted:
            taken = self._hide(taken, *borders)
        return taken

    def _acquire_known(  # noqa: PLR0913  (one step of `acquire`)
        self,
        one: InFlight,
        read: tuple[int, int],
        ask: Acquire,
        lock: _Lock,
        taken: list[AcquiredRange],
        left: int,
        room: int,
    ) -> int:
        """Acquire what is available of a range; return how many more are wanted."""
        is_throttled = self._is_throttled(one, *read)
        if is_throttled and left < room:
            return 0
        is_part = one.first < read[0] or one.last > read[1]
        if ask.is_exact and len(one) > left:
            is_part = True
        if not one.is_split and one.whole.state is not RecordState.AVAILABLE:
            return left
        if not (is_part or is_throttled or one.is_split):
            lock.take(one.whole)
            taken.append(AcquiredRange(one.first, one.last, one.whole.count))
            return left - len(one)
        one.split()
        found = self._acquire_single(
            one, read, lock, left if ask.is_exact else len(one)
        )
        taken += found
        count = sum(last - first + 1 for first, last, _ in found)
        return 0 if is_throttled and count else left - count

    def _is_throttled(self, one: InFlight, first: int, last: int) -> bool:
        parts = one.deliveries
        if one.is_split:
            parts = [delivery for _, delivery in one.between(first, last)]
        return any(
            delivery.state is RecordState.AVAILABLE
            and delivery.count >= self.limits.throttled_from
            for delivery in parts
        )

    def _acquire_single(
        self, one: InFlight, read: tuple[int, int], lock: _Lock, most: int
    ) -> list[AcquiredRange]:
        """Acquire single offsets of a split range; join those that are adjacent."""
        found: list[AcquiredRange] = []
        limit, throttled_from = self.limits.delivery_limit, self.limits.throttled_from
        is_limited = False
        count = 0
        for offset, delivery in one.between(*read):
            if delivery.state is not RecordState.AVAILABLE:
                continue
            is_alone = limit >= _LEAST_ALONE and delivery.count == limit - 1
            if is_alone and count:
                break
            if delivery.count >= throttled_from and not is_limited:
                # Half as many with each delivery; the first of them decides.
                fewer = len(one) >> (delivery.count - throttled_from + 1)
                most, is_limited = min(most, max(1, fewer)), True
            lock.take(delivery)
            _append(found, offset, delivery.count)
            count += 1
            if is_alone or count >= most:
                break
        return found

    def _acquire_new(
        self,
        first: int,
        last: int,
        ask: Acquire,
        lock: _Lock,
        batches: Sequence[tuple[int, int]],
        room: int,
    ) -> list[AcquiredRange]:
        """Acquire records that were never delivered; whole batches are put in flight.

        An exact request leaves the rest of its last batch available.
        """
        if not self._ranges:
            first = max(first, self.frontier)
            # Compaction or retention may have removed what lies before.
            self.start = first
        if first + room - 1 < last:
            wanted = first + room - 1
            last = next((end for base, end in batches if base <= wanted <= end), wanted)
        if first > last:
            return []
        if ask.is_exact:
            one = self._add(first, last, Delivery())
            if len(one) <= room:
                lock.take(one.whole)
                return [AcquiredRange(first, last, 1)]
            one.split()
            for _, delivery in one.between(first, first + room - 1):
                lock.take(delivery)
            return [AcquiredRange(first, first + room - 1, 1)]
        found = []
        for base, end in _divided(first, last, batches, ask.batch_size):
            lock.take(self._add(base, end, Delivery()).whole)
            found.append(AcquiredRange(base, end, 1))
        return found

    def _hide(
        self, taken: Iterable[AcquiredRange], first: int, last: int
    ) -> list[AcquiredRange]:
        """Archive the batch of an aborted transaction, and leave it out."""
        for one in self._overlapping(first, last):
            if one.first < first or one.last > last:
                one.split()
            for base, end, delivery in one.runs():
                is_held = delivery.state is RecordState.ACQUIRED
                if first <= base and end <= last and is_held:
                    delivery.unlock(RecordState.ARCHIVED)
        found = []
        for base, end, count in taken:
            if base < first:
                found.append(AcquiredRange(base, min(end, first - 1), count))
            if end > last:
                found.append(AcquiredRange(max(base, last + 1), end, count))
        return found

    def _archive_missing(self, offset: int, first: int) -> None:
        """Archive what was available and is not in the log any more."""
        if offset < first:
            self._archive_available(offset, first)

    def _archive_available(self, first: int, end: int) -> None:
        for one in self._overlapping(first, end - 1):
            if not one.is_split and one.whole.state is not RecordState.AVAILABLE:
                continue
            if one.first < first or one.last >= end:
                one.split()
            for base, _, delivery in one.runs():
                is_within = first <= base < end
                if is_within and delivery.state is RecordState.AVAILABLE:
                    delivery.unlock(RecordState.ARCHIVED)

    # ---- acknowledging -----------------------------------------------------------

    def acknowledge(self, member: str, acks: Sequence[AckBatch], now: float) -> None:
        """Apply a member's acknowledgements: all of them, or none.

        Raises:
            Refusal: as `judge`.
        """
        self.settle(self.judge(member, acks, now))

    def judge(self, member: str, acks: Sequence[AckBatch], now: float) -> Decisions:
        """Check a member's acknowledgements; `settle` applies them.

        Offsets before the start are ignored, whoever acknowledges them. A renewal takes
        effect here, also if another acknowledgement is refused.

        Raises:
            Refusal: INVALID_RECORD_STATE if the member does not hold one of the
                records; INVALID_REQUEST if one was never delivered.
        """
        decided: Decisions = []
        deadline = now + self.limits.lock_duration
        for ack in acks:
            if ack.last < self.start:
                continue
            for one in self._acknowledged(ack):
                if one.last < self.start:
                    continue
                for found in self._decisions(member, ack, one):
                    if found[3] is not AckType.RENEW:
                        decided.append(found)
                    elif self.limits.may_renew:
                        found[2].deadline = deadline
                    else:
                        raise Refusal(ErrorCode.INVALID_RECORD_STATE, _NO_RENEWAL)
        return decided

    def settle(self, decided: Decisions) -> None:
        """Apply the acknowledgements that `judge` has found right."""
        for first, last, delivery, decision in decided:
            self._decide(first, last, delivery, decision)
        if decided:
            self._changed()

    def _acknowledged(self, ack: AckBatch) -> list[InFlight]:
        """Return the ranges that an acknowledgement is about."""
        place = self._place(ack.first)
        if place < 0 and ack.first < self.start:
            place = self._place(self.start)
        if place < 0:
            raise Refusal(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in"
                " the cache.",
            )
        found = [one for one in self._ranges[place:] if one.first <= ack.last]
        for offset, which in ((ack.first, "first"), (ack.last, "last")):
            if found[-1].last < offset:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {which} offset in request is past"
                    " acquired records.",
                )
        return found

    def _decisions(
        self, member: str, ack: AckBatch, one: InFlight
    ) -> Iterator[tuple[int, int, Delivery, AckType]]:
        """Yield the decisions on a range, after a check of who holds it."""
        if not one.is_split:
            whole = one.whole
            if whole.member == NOBODY:
                raise _lost("batch", "The batch is not in the acquired state.")
            if whole.member != member:
                raise _not_owner("batch record")
            is_all = ack.first <= one.first and one.last <= ack.last
            if is_all and len(ack.types) == 1 and one.first >= self.start:
                yield one.first, one.last, whole, ack.type_of(ack.first)
                return
            one.split()
        for offset, delivery in one.between(max(ack.first, self.start), ack.last):
            if delivery.state is not RecordState.ACQUIRED:
                raise _lost("offset", "The offset is not acquired.")
            if delivery.member != member:
                raise _not_owner("offset")
            yield offset, offset, delivery, ack.type_of(offset)

    def _decide(
        self, first: int, last: int, delivery: Delivery, decision: AckType
    ) -> None:
        if decision is AckType.RELEASE:
            self._free(first, last, delivery)
        elif decision is AckType.ACCEPT:
            delivery.unlock(RecordState.ACKNOWLEDGED)
        else:
            delivery.unlock(RecordState.ARCHIVED)
            if decision is AckType.REJECT:
                self.dead.append(
                    DeadRecords(first, last, delivery.count, is_rejected=True)
                )

    def _free(self, first: int, last: int, delivery: Delivery) -> None:
        """Make a record available again, or archive it."""
        if last < self.start:
            delivery.unlock(RecordState.ARCHIVED)
        elif delivery.count >= self.limits.delivery_limit:
            delivery.unlock(RecordState.ARCHIVED)
            self.dead.append(
                DeadRecords(first, last, delivery.count, is_rejected=False)
            )
        else:
            delivery.unlock(RecordState.AVAILABLE)

    # ---- losing locks ------------------------------------------------------------

    def release(self, member: str) -> bool:
        """Free all that a member holds; return whether it held anything."""
        return self._free_where(lambda delivery: delivery.member == member)

    def expire(self, now: float) -> bool:
        """Free what has been locked for too long; return whether anything was."""
        return self._free_where(lambda delivery: delivery.deadline <= now)

    def expire_all(self) -> bool:
        """Free everything, as if all locks had ended; return whether there were any."""
        return self._free_where(lambda _: True)

    def _free_where(self, is_freed: Callable[[Delivery], bool]) -> bool:
        has_freed = False
        for one in self._ranges:
            if one.first < self.start <= one.last and not one.is_split:
                one.split()
            for first, last, delivery in one.runs():
                if delivery.state is RecordState.ACQUIRED and is_freed(delivery):
                    self._free(first, last, delivery)
                    has_freed = True
        if has_freed:
            self._changed()
        return has_freed

    def log_starts_at(self, offset: int) -> None:
        """Skip what was deleted from the log; what members hold of it stays theirs."""
        if offset <= self.start:
            return
        self._archive_available(self.start, offset)
        self.start = offset
        self.frontier = max(self.frontier, offset)

    # ---- inside ------------------------------------------------------------------

    def _add(self, first: int, last: int, delivery: Delivery) -> InFlight:
        added = InFlight(first, last, delivery)
        self._ranges.append(added)
        self.frontier = max(self.frontier, last + 1)
        return added

    def _place(self, offset: int) -> int:
        """Return the position of the last range that begins at or before an offset."""
        return bisect_right(self._ranges, offset, key=lambda one: one.first) - 1

    def _overlapping(self, first: int, last: int) -> list[InFlight]:
        found = self._ranges[max(self._place(first), 0) :]
        return [one for one in found if one.last >= first and one.first <= last]

    def _changed(self) -> None:
        # Before the start moves, as in Kafka: what is described trails behind.
        self.kept = self._image()
        self._advance()

    def _image(self) -> ShareImage:
        runs: list[tuple[int, int, RecordState, int]] = []
        for first, last, delivery in self._deliveries():
            state, count = delivery.state, delivery.count
            if state is RecordState.ACQUIRED:
                state, count = RecordState.AVAILABLE, count - 1
            # Never delivered, as far as the next leader knows.
            if (state is RecordState.AVAILABLE and not count) or last < self.start:
                continue
            if runs and runs[-1][1:] == (first - 1, state, count):
                runs[-1] = (runs[-1][0], last, state, count)
            else:
                runs.append((max(first, self.start), last, state, count))
        return ShareImage(self.start, tuple(runs))

    def _advance(self) -> None:
        """Move the start over all that is done with."""
        done = 0
        for one in self._ranges:
            if not one.is_final and one.last >= self.start:
                break
            done += 1
        if done:
            gone = self._ranges[done - 1].last + 1
            del self._ranges[:done]
            after = self._ranges[0].first if self._ranges else gone
            self.start = max(self.start, after)
        if not self._ranges:
            self.frontier = self.start = max(self.start, self.frontier)
            return
        for first, _, delivery in self._ranges[0].runs():
            if not delivery.state.is_final:
                self.start = max(self.start, first)
                break


class _Lock(NamedTuple):
    """The lock that a request puts on what it acquires."""

    member: str
    deadline: float

    def take(self, delivery: Delivery) -> None:
        delivery.lock(self.member, self.deadline)


def _append(found: list[AcquiredRange], offset: int, count: int) -> None:
    if found and found[-1][1:] == (offset - 1, count):
        found[-1] = found[-1]._replace(last=offset)
    else:
        found.append(AcquiredRange(offset, offset, count))


def _divided(
    first: int, last: int, batches: Sequence[tuple[int, int]], size: int
) -> Iterator[tuple[int, int]]:
    """Divide a range at the borders of batches, into parts of at least a size."""
    if last - first + 1 > size:
        for base, _ in batches:
            if first < base <= last and base - first >= size:
                yield first, base - 1
                first = base
    yield first, last


def _lost(what: str, why: str) -> Refusal:
    text = f"The {what} cannot be acknowledged. {why}"
    return Refusal(ErrorCode.INVALID_RECORD_STATE, text)


def _not_owner(what: str) -> Refusal:
    text = f"Member is not the owner of {what}"
    return Refusal(ErrorCode.INVALID_RECORD_STATE, text)
