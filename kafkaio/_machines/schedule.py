"""Which record a worker takes next, and up to which offset a partition is finished.

Records come partition by partition, in the order of their offsets, and many of them run
at a time. Records of one *strand* run one after the other, in the order of their
offsets; different strands run beside each other. With the ordering ``key`` a strand is
the records of one key in one partition. With ``partition`` it is the whole partition.
With ``none`` every record is a strand of its own, as is a record without a key.

A record in hand is in one of these states::

    waiting (behind its strand) -> ready -> running -> finished
                                     ^         |
                                     +- retry <+   (waits for its back-off)
                                     +- parked <   (waits for its deserializer)

Offsets are committed in order all the same: a partition is finished up to its first
unfinished record, whatever is finished behind it. Only the unfinished records are
remembered, so the number of records in hand bounds the memory. Offsets that never come
(removed by compaction, or transaction markers) leave no trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from heapq import heappop, heappush
from typing import Final, Literal, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import ArgumentValueError
from kafkaio.types import Record, TopicPartition

#: Which records of one partition must not run at the same time.
Ordering: TypeAlias = Literal["key", "partition", "none"]


class FirstUnfinished(NamedTuple):
    """The first unfinished record of a partition.

    Attributes:
        offset: its offset.
        epoch: leader epoch of the record before it, -1 if unknown.
    """

    offset: int
    epoch: int


@dataclass(slots=True, eq=False)
class _Assignment:
    # One assignment of one partition, and its records in hand.
    tp: TopicPartition
    ready: deque[Job] = field(default_factory=deque)
    # Strands with a record that is ready, running or due for a retry, and the records
    # that wait behind it.
    strands: dict[object, deque[Job] | None] = field(default_factory=dict)
    # Invariant: the unfinished offsets in ascending order, each with the leader epoch
    # of the record before it.
    unfinished: dict[int, int] = field(default_factory=dict)
    last_offset: int = -1
    last_epoch: int = -1
    last_begun: int = -1
    in_hand: int = 0
    running: int = 0
    is_queued: bool = False
    takes_more: bool = True
    is_draining: bool = False
    # Those of the retries that were parked until a time.
    parked: set[Job] = field(default_factory=set)
    # Held back until `go_on`, in the order of their offsets; None if nothing is.
    later: list[Job] | None = None


@dataclass(slots=True, eq=False)
class Job:
    """One record, on its way through a handler.

    Attributes:
        record: the record.
        assignment: the assignment under which it came.
        strand: the strand that it belongs to; None for one of its own.
        attempts: how often it was begun.
        is_dropped: whether it is not to be begun again.
    """

    record: Record
    assignment: _Assignment
    strand: object
    attempts: int = 0
    is_dropped: bool = False


def _key(record: Record) -> object:
    return record.key


def _whole_partition(record: Record) -> object:
    del record
    return ""


def _nothing(record: Record) -> None:
    del record


_STRANDS: Final[dict[Ordering, Callable[[Record], object]]] = {
    "key": _key,
    "partition": _whole_partition,
    "none": _nothing,
}


class Schedule:
    """The records in hand of every partition: added, and not finished.

    The partitions take turns; within a partition the record with the lowest offset
    comes first.

    Args:
        ordering: which records of one partition must not run at the same time.
        limit: most records in hand, divided evenly among the partitions; each may have
            one at least.

    Raises:
        ArgumentValueError: the ordering is unknown.
    """

    def __init__(self, ordering: Ordering, limit: int) -> None:
        if ordering not in _STRANDS:
            known = ", ".join(_STRANDS)
            raise ArgumentValueError(f"ordering={ordering!r} is none of {known}")
        self._strand_of = _STRANDS[ordering]
        self._limit = limit
        self._assignments: dict[TopicPartition, _Assignment] = {}
        # Invariant: the partitions with ready records, each once.
        self._queue: deque[_Assignment] = deque()
        self._retries: list[tuple[float, int, Job]] = []
        self._serial = 0
        #: How many records can be begun now.
        self.ready: int = 0
        self._set_limits()

    def __repr__(self) -> str:
        return (
            f"<Schedule {len(self._assignments)} partitions | {self.in_hand} in hand, "
            f"{self.ready} ready, {self.running} running, "
            f"{len(self._retries)} to retry>"
        )

    @property
    def in_hand(self) -> int:
        """How many records were added and are not finished."""
        return sum(assignment.in_hand for assignment in self._assignments.values())

    @property
    def running(self) -> int:
        """How many records were begun and have not ended."""
        return sum(assignment.running for assignment in self._assignments.values())

    # Partitions

    def open(self, tp: TopicPartition) -> None:
        """Begin an assignment, and forget the records of an older one."""
        self.close(tp)
        self._assignments[tp] = _Assignment(tp)
        self._set_limits()

    def close(self, tp: TopicPartition) -> None:
        """End an assignment, and forget its records."""
        assignment = self._assignments.pop(tp, None)
        if assignment is not None:
            self._drop_after(assignment, -1)
            self._set_limits()

    def drain(self, tp: TopicPartition) -> None:
        """Begin no record behind the last one that was begun.

        Records before that one are still begun, so that in the end everything up to it
        is finished. Otherwise the partition's next owner would repeat some records. But
        those that are parked until a time, now or later, are dropped with all behind
        them: they may be parked again and again, and would keep the partition for ever.
        """
        assignment = self._assignments.get(tp)
        if assignment is not None:
            assignment.takes_more = False
            assignment.is_draining = True
            assignment.later = None
            self._drop_after(assignment, assignment.last_begun)
            self._drop_parked(assignment)

    def stop_adding(self) -> None:
        """Take no more records, until `go_on`; those in hand are begun."""
        for assignment in self._assignments.values():
            if assignment.takes_more:
                assignment.takes_more = False
                assignment.later = []

    def hold_back(self) -> None:
        """Begin no record behind the last that was begun, until `go_on`.

        In the end everything up to the last record begun is finished in each partition,
        as after `drain`; the records behind it wait.
        """
        self.stop_adding()
        for assignment in self._assignments.values():
            if assignment.later is not None:
                dropped = self._drop_after(assignment, assignment.last_begun)
                assignment.later += sorted(dropped, key=_offset)

    def go_on(self) -> int:
        """Let records be begun and added again; returns how many were held back."""
        count = 0
        for assignment in self._assignments.values():
            later, assignment.later = assignment.later, None
            if later is not None:
                assignment.takes_more = True
                assignment.in_hand += len(later)
                count += len(later)
                self._place(assignment, later)
        return count

    @property
    def is_holding_back(self) -> bool:
        """Whether `go_on` would let records be begun."""
        return any(assignment.later for assignment in self._assignments.values())

    def is_drained(self, tp: TopicPartition) -> bool:
        """Whether no record of a partition is in hand, or will be."""
        assignment = self._assignments.get(tp)
        return assignment is None or not (assignment.takes_more or assignment.in_hand)

    def is_current(self, job: Job) -> bool:
        """Whether the job belongs to the present assignment of its partition."""
        return self._assignments.get(job.assignment.tp) is job.assignment

    def capacity(self, tp: TopicPartition) -> int:
        """How many records of a partition to add now.

        0 until half of its limit is finished, so that records are added in runs and not
        one by one.
        """
        assignment = self._assignments.get(tp)
        if assignment is None or not assignment.takes_more:
            return 0
        return (
            self._per_partition - assignment.in_hand
            if assignment.in_hand <= self._low
            else 0
        )

    def first_unfinished(self, tp: TopicPartition) -> FirstUnfinished | None:
        """Up to which record a partition is finished; None if all that came are."""
        assignment = self._assignments.get(tp)
        if assignment is None:
            return None
        offset = next(iter(assignment.unfinished), None)
        return (
            None
            if offset is None
            else FirstUnfinished(offset, assignment.unfinished[offset])
        )

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """The partitions that are open."""
        return [*self._assignments]

    # Records

    def add(self, tp: TopicPartition, records: Iterable[Record]) -> None:
        """Add records of an open partition, in the order of their offsets.

        If they begin before a record that came already, after a seek or a truncation of
        the log, the partition is opened again.
        """
        assignment = self._assignments[tp]
        strand_of = self._strand_of
        jobs: list[Job] = []
        for record in records:
            offset = record.offset
            if offset <= assignment.last_offset:
                self.open(tp)
                assignment = self._assignments[tp]
                jobs.clear()
            assignment.unfinished[offset] = assignment.last_epoch
            assignment.last_offset, assignment.last_epoch = offset, record.leader_epoch
            jobs.append(Job(record, assignment, strand_of(record)))
        assignment.in_hand += len(jobs)
        self._place(assignment, jobs)

    def next(self) -> Job | None:
        """Begin the next record; None if none is ready."""
        queue = self._queue
        if not queue:
            return None
        assignment = queue[0]
        job = assignment.ready.popleft()
        if not assignment.ready:
            queue.popleft()
            assignment.is_queued = False
        elif len(queue) > 1:
            queue.rotate(-1)
        self.ready -= 1
        assignment.running += 1
        assignment.last_begun = max(assignment.last_begun, job.record.offset)
        job.attempts += 1
        return job

    def finished(self, job: Job) -> bool:
        """A record is finished.

        Returns:
            Whether its partition has capacity for more from now on.
        """
        assignment = job.assignment
        assignment.running -= 1
        assignment.in_hand -= 1
        if self._assignments.get(assignment.tp) is not assignment:
            return False
        del assignment.unfinished[job.record.offset]
        if job.strand is not None:
            behind = assignment.strands[job.strand]
            if behind:
                self._ready_first(behind.popleft())
            else:
                del assignment.strands[job.strand]
        return assignment.in_hand == self._low and assignment.takes_more

    def abandoned(self, job: Job) -> None:
        """A record that was begun has ended unfinished, and is not retried."""
        job.assignment.running -= 1

    def retry(self, job: Job, at: float) -> None:
        """Begin a record again at that time; its strand waits for it."""
        job.assignment.running -= 1
        if self.is_current(job):
            self._serial += 1
            heappush(self._retries, (at, self._serial, job))

    def park(self, job: Job, until: float | None = None) -> None:
        """A record that was begun is not there yet; its strand waits for it.

        Nobody has worked on it, so this does not count as an attempt.

        Args:
            job: the record.
            until: when to begin it again; None waits for `unpark`.
        """
        job.attempts -= 1
        if until is None:
            job.assignment.running -= 1
        else:
            self.retry(job, until)
            if self.is_current(job):
                job.assignment.parked.add(job)
                if job.assignment.is_draining:
                    self._drop_parked(job.assignment)

    def unpark(self, job: Job) -> None:
        """Let a parked record be begun again, before the others of its partition."""
        if self.is_current(job):
            self._ready_first(job)

    def wake(self, now: float) -> None:
        """Make the records ready whose retry is due."""
        while self._retries and self._retries[0][0] <= now:
            _, _, job = heappop(self._retries)
            job.assignment.parked.discard(job)
            if self.is_current(job) and not job.is_dropped:
                self._ready_first(job)

    def next_wake(self) -> float | None:
        """When the next retry is due; None if there is none."""
        return self._retries[0][0] if self._retries else None

    def _place(self, assignment: _Assignment, jobs: Iterable[Job]) -> None:
        # Each is ready, or waits behind its strand.
        strands, ready = assignment.strands, assignment.ready
        for job in jobs:
            strand = job.strand
            if strand is not None:
                if strand in strands:
                    self._append_behind(job)
                    continue
                strands[strand] = None
            ready.append(job)
            self.ready += 1
        if ready and not assignment.is_queued:
            self._enqueue(assignment)

    def _drop_after(self, assignment: _Assignment, last: int) -> list[Job]:
        dropped = [job for job in assignment.ready if job.record.offset > last]
        if dropped:
            assignment.ready = _up_to(assignment.ready, last)
            self.ready -= len(dropped)
        strands = assignment.strands
        # Strands of which nothing is left: their first record was one of these.
        over = [job.strand for job in dropped if job.strand is not None]
        for strand, behind in strands.items():
            if behind:
                dropped += [job for job in behind if job.record.offset > last]
                strands[strand] = _up_to(behind, last)
        for strand in over:
            del strands[strand]
        assignment.in_hand -= len(dropped)
        if assignment.is_queued and not assignment.ready:
            assignment.is_queued = False
            self._queue.remove(assignment)
        return dropped

    def _drop_parked(self, assignment: _Assignment) -> None:
        parked = assignment.parked
        if not parked:
            return
        last = min(map(_offset, parked)) - 1
        for job in parked:
            job.is_dropped = True
        assignment.in_hand -= len(parked)
        parked.clear()
        self._drop_after(assignment, last)

    def _append_behind(self, job: Job) -> None:
        strands = job.assignment.strands
        behind = strands[job.strand]
        if behind is None:
            behind = strands[job.strand] = deque()
        behind.append(job)

    def _ready_first(self, job: Job) -> None:
        # Before the others: until it is finished, nothing behind it is committed.
        job.assignment.ready.appendleft(job)
        self.ready += 1
        if not job.assignment.is_queued:
            self._enqueue(job.assignment)

    def _enqueue(self, assignment: _Assignment) -> None:
        assignment.is_queued = True
        self._queue.append(assignment)

    def _set_limits(self) -> None:
        self._per_partition = max(1, self._limit // max(1, len(self._assignments)))
        self._low = self._per_partition // 2


def _offset(job: Job) -> int:
    return job.record.offset


def _up_to(jobs: deque[Job], last: int) -> deque[Job]:
    return deque(job for job in jobs if job.record.offset <= last)
