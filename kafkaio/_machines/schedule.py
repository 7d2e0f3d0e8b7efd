"""Which record a worker takes next, and up to where a partition is finished.

Theory. Records come partition by partition in the order of their offsets and are
worked on many at a time. What may run beside what is a matter of *strands*: records of
one strand run one after the other, in the order of their offsets. With ``key`` a
strand is the records of one key in one partition, with ``partition`` it is the whole
partition, with ``none`` every record is one by itself, as is a record without a key.

A record in hand is in one of these places::

    waiting (behind its strand) -> ready -> running -> finished
                                     ^         |
                                     +- parked <+   (a retry after its back-off)

Offsets are committed in order all the same: a partition is finished up to its first
unfinished record, whatever is finished behind that. So it is the unfinished records
alone that are remembered, and memory is bounded by the number of records in hand.
Offsets that never come (compacted away, or markers of transactions) leave no trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from heapq import heappop, heappush
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio.errors import UsageError
from kafkaio.types import Record, TopicPartition

__all__ = ["Job", "Ordering", "Place", "Schedule"]

#: What of one partition must not run at the same time.
Ordering: TypeAlias = Literal["key", "partition", "none"]


class Place(NamedTuple):
    """Where the first unfinished record of a partition stands.

    Attributes:
        offset: its offset.
        epoch: leader epoch of the record before it, -1 if unknown.
    """

    offset: int
    epoch: int


@dataclass(slots=True, eq=False)
class _Line:
    # One assignment of one partition.
    tp: TopicPartition
    ready: deque[Job] = field(default_factory=deque)
    # Strands with a record that is ready, running or parked, and what waits behind it.
    strands: dict[object, deque[Job] | None] = field(default_factory=dict)
    # Unfinished offsets in their order, each with the epoch of the record before it.
    unfinished: dict[int, int] = field(default_factory=dict)
    last_offset: int = -1
    last_epoch: int = -1
    last_begun: int = -1
    in_hand: int = 0
    running: int = 0
    is_queued: bool = False
    takes_more: bool = True


@dataclass(slots=True, eq=False)
class Job:
    """One record, on its way through a handler.

    Attributes:
        record: the record.
        line: the assignment of the partition that it came under.
        strand: what it must not run beside; None where it is free.
        attempts: how often it was begun.
    """

    record: Record
    line: _Line
    strand: object
    attempts: int = 0


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
    """The records in hand of every partition.

    Ready records are handed out partition by partition in turn, within a partition
    the one that came first.

    Args:
        ordering: what of one partition must not run at the same time.
        limit: most records in hand, divided evenly among the partitions; each may
            have one.

    Raises:
        UsageError: there is no such ordering.
    """

    def __init__(self, ordering: Ordering, limit: int) -> None:
        if ordering not in _STRANDS:
            known = ", ".join(_STRANDS)
            raise UsageError(f"ordering={ordering!r} is none of {known}")
        self._strand_of = _STRANDS[ordering]
        self._limit = limit
        self._lines: dict[TopicPartition, _Line] = {}
        # Invariant: the lines with ready records, each once.
        self._queue: deque[_Line] = deque()
        self._parked: list[tuple[float, int, Job]] = []
        self._serial = 0
        #: Records that may be begun now.
        self.ready = 0
        self._divide()

    def __repr__(self) -> str:
        return (
            f"<Schedule {len(self._lines)} partitions | {self.in_hand} in hand, "
            f"{self.ready} ready, {self.running} running, {len(self._parked)} parked>"
        )

    @property
    def in_hand(self) -> int:
        """Records that were added and are not finished."""
        return sum(line.in_hand for line in self._lines.values())

    @property
    def running(self) -> int:
        """Records that were begun and have not ended."""
        return sum(line.running for line in self._lines.values())

    # Partitions

    def open(self, tp: TopicPartition) -> None:
        """Begin an assignment; what is in hand of an older one is forgotten."""
        self.close(tp)
        self._lines[tp] = _Line(tp)
        self._divide()

    def close(self, tp: TopicPartition) -> None:
        """End an assignment: what is in hand of it is forgotten."""
        line = self._lines.pop(tp, None)
        if line is not None:
            self._drop_after(line, -1)
            self._divide()

    def drain(self, tp: TopicPartition) -> None:
        """Begin no record of a partition after the last that was begun.

        Those before it are still begun, so that in the end all up to there are
        finished: otherwise the partition's next owner would repeat some.
        """
        line = self._lines.get(tp)
        if line is not None:
            line.takes_more = False
            self._drop_after(line, line.last_begun)

    def is_drained(self, tp: TopicPartition) -> bool:
        """Whether nothing of a partition is in hand, nor will be."""
        line = self._lines.get(tp)
        return line is None or not (line.takes_more or line.in_hand)

    def is_current(self, job: Job) -> bool:
        """Whether the job's assignment is the one that its partition has now."""
        return self._lines.get(job.line.tp) is job.line

    def room(self, tp: TopicPartition) -> int:
        """How many records of a partition to take in now.

        None until half of its share is finished, so that records are taken by the
        run and not one by one.
        """
        line = self._lines.get(tp)
        if line is None or not line.takes_more:
            return 0
        return self._share - line.in_hand if line.in_hand <= self._low else 0

    def first_unfinished(self, tp: TopicPartition) -> Place | None:
        """Up to where a partition is finished: None where all that came is."""
        line = self._lines.get(tp)
        if line is None:
            return None
        offset = next(iter(line.unfinished), None)
        return None if offset is None else Place(offset, line.unfinished[offset])

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """The partitions that are open."""
        return [*self._lines]

    # Records

    def add(self, tp: TopicPartition, records: Iterable[Record]) -> None:
        """Take in records of an open partition, in the order of their offsets.

        Where they go back behind what came before, by a seek or because the log was
        truncated, the partition begins anew.
        """
        line = self._lines[tp]
        strand_of = self._strand_of
        for record in records:
            offset = record.offset
            if offset <= line.last_offset:
                self.open(tp)
                line = self._lines[tp]
            line.unfinished[offset] = line.last_epoch
            line.last_offset, line.last_epoch = offset, record.leader_epoch
            line.in_hand += 1
            strand = strand_of(record)
            job = Job(record, line, strand)
            if strand is None:
                line.ready.append(job)
            elif strand in line.strands:
                self._append_behind(job)
                continue
            else:
                line.strands[strand] = None
                line.ready.append(job)
            self.ready += 1
            if not line.is_queued:
                self._enqueue(line)

    def next(self) -> Job | None:
        """Begin the next record: None where none is ready."""
        queue = self._queue
        if not queue:
            return None
        line = queue[0]
        job = line.ready.popleft()
        if not line.ready:
            queue.popleft()
            line.is_queued = False
        elif len(queue) > 1:
            queue.rotate(-1)
        self.ready -= 1
        line.running += 1
        line.last_begun = max(line.last_begun, job.record.offset)
        job.attempts += 1
        return job

    def finished(self, job: Job) -> bool:
        """A record is done with.

        Returns:
            Whether its partition has room for more from here on.
        """
        line = job.line
        line.running -= 1
        line.in_hand -= 1
        if self._lines.get(line.tp) is not line:
            return False
        del line.unfinished[job.record.offset]
        if job.strand is not None:
            behind = line.strands[job.strand]
            if behind:
                self._ready_first(behind.popleft())
            else:
                del line.strands[job.strand]
        return line.in_hand == self._low and line.takes_more

    def abandoned(self, job: Job) -> None:
        """A record was begun and is not done with: it stays unfinished."""
        job.line.running -= 1

    def try_again(self, job: Job, at: float) -> None:
        """Begin a record again later; what is behind it in its strand waits."""
        job.line.running -= 1
        if self.is_current(job):
            self._serial += 1
            heappush(self._parked, (at, self._serial, job))

    def wake(self, now: float) -> None:
        """What was parked until now is ready."""
        while self._parked and self._parked[0][0] <= now:
            _, _, job = heappop(self._parked)
            if self.is_current(job):
                self._ready_first(job)

    def next_wake(self) -> float | None:
        """When `wake` has something to do: None while nothing is parked."""
        return self._parked[0][0] if self._parked else None

    def _drop_after(self, line: _Line, last: int) -> None:
        ready = len(line.ready)
        line.ready = _up_to(line.ready, last)
        dropped = ready - len(line.ready)
        self.ready -= dropped
        for strand, behind in line.strands.items():
            if behind:
                line.strands[strand] = kept = _up_to(behind, last)
                dropped += len(behind) - len(kept)
        line.in_hand -= dropped
        if line.is_queued and not line.ready:
            line.is_queued = False
            self._queue.remove(line)

    def _append_behind(self, job: Job) -> None:
        strands = job.line.strands
        behind = strands[job.strand]
        if behind is None:
            behind = strands[job.strand] = deque()
        behind.append(job)

    def _ready_first(self, job: Job) -> None:
        # What came first goes first: it holds the commits back.
        job.line.ready.appendleft(job)
        self.ready += 1
        if not job.line.is_queued:
            self._enqueue(job.line)

    def _enqueue(self, line: _Line) -> None:
        line.is_queued = True
        self._queue.append(line)

    def _divide(self) -> None:
        self._share = max(1, self._limit // max(1, len(self._lines)))
        self._low = self._share // 2


def _up_to(jobs: deque[Job], last: int) -> deque[Job]:
    return deque(job for job in jobs if job.record.offset <= last)
