"""What was written, handed out and committed, and the laws that it has to obey."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Book", "Cluster", "Held", "Session", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that was broken.

    Attributes:
        at: seconds after the beginning.
        law: which one; the same for all that break it.
        detail: what happened.
    """

    at: float
    law: str
    detail: str

    def __str__(self) -> str:
        return f"{self.at:9.3f} s  {self.law}: {self.detail}"


class Cluster(Protocol):
    """What the book asks of the cluster."""

    def written(self, partition: int, start: int) -> list[bytes]:
        """The values in a partition's log from an offset on."""

    def committed(self, partition: int) -> int:
        """The group's committed offset, -1 for none."""

    def is_member(self, member_id: str) -> bool:
        """Whether the group's coordinator takes somebody for a member."""


@dataclass(slots=True)
class Held:
    """One assignment of one partition to one session.

    Attributes:
        expected: the offset that has to come next, -1 until something came.
        finished: offsets before it may be committed, -1 until something came.
        is_asked_back: whether the user was told that it is to be given up.
        is_doubtful: whether what is finished may not have been committed at the end.
    """

    expected: int = -1
    finished: int = -1
    is_asked_back: bool = False
    is_doubtful: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """The life of one consumer, as its user sees it.

    Attributes:
        name: its client id.
        member_id: who it is to the group.
        held: what it has, by partition.
        is_over: whether its consumer was closed, or its process ended.
    """

    name: str
    member_id: Callable[[], str] = str
    held: dict[int, Held] = field(default_factory=dict)
    is_over: bool = False


@dataclass(slots=True)
class _Sent:
    # One record, as its producer knows it: its place, if it was acknowledged.
    place: tuple[int, int] | None = None
    has_failed: bool = False


class Book:
    """Keeps the accounts; every law is checked when something is entered.

    Values are ``key:number``, where numbers count all records up from 0.

    Args:
        cluster: the truth about logs and commits.
        partitions: how many there are.
        clock: what time it is.
        violated: told of every broken law.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: int,
        clock: Callable[[], float],
        violated: Callable[[Violation], None],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._violated = violated
        self._logs: list[list[bytes]] = [[] for _ in range(partitions)]
        #: All records before it were handed out at least once, by partition.
        self.frontier = [0] * partitions
        # Records before it may come again, and why that is so.
        self._excused = [0] * partitions
        self._sent: list[_Sent] = []
        self._last_written = [-1] * partitions
        # The partition that each key was found in.
        self._homes: dict[str, int] = {}
        self._sessions: list[Session] = []
        self.delivered = self.repeated = self.acknowledged = self.failed = 0

    def break_law(self, law: str, detail: str) -> None:
        """Note that a law was broken."""
        self._violated(Violation(self._clock(), law, detail))

    # ---- producers ---------------------------------------------------------------

    def sent(self) -> int:
        """A record is about to be enqueued; returns its number."""
        self._sent.append(_Sent())
        return len(self._sent) - 1

    def acked(self, number: int, place: tuple[int, int]) -> None:
        """A record was acknowledged, at a partition and offset."""
        self.acknowledged += 1
        self._sent[number].place = place

    def gave_up(self, number: int) -> None:
        """A record failed: it may have been written or not."""
        self.failed += 1
        self._sent[number].has_failed = True

    def read_logs(self) -> None:
        """Check what was written since the last look."""
        for partition, log in enumerate(self._logs):
            start = len(log)
            log += self._cluster.written(partition, start)
            for offset in range(start, len(log)):
                self._check_written(partition, offset)

    def _check_written(self, partition: int, offset: int) -> None:
        key, number = _parse(self._logs[partition][offset])
        last = self._last_written[partition]
        where = f"record {number} at offset {offset} of partition {partition}"
        if number <= last:
            what = "twice" if number == last else "out of order"
            self.break_law(f"written {what}", f"{where}, after record {last}")
        if self._homes.setdefault(key, partition) != partition:
            self.break_law("in two partitions", f"{where}, others with its key {key}")
        self._last_written[partition] = max(number, last)

    def check_acknowledged(self) -> None:
        """Check that all that was acknowledged is where it was said to be.

        Of every other record it must be known that it failed.
        """
        self.read_logs()
        for number, sent in enumerate(self._sent):
            if sent.place is not None:
                self._check_place(number, *sent.place)
            elif not sent.has_failed:
                self.break_law("never answered", f"record {number}")

    def _check_place(self, number: int, partition: int, offset: int) -> None:
        log = self._logs[partition]
        if offset >= len(log) or _parse(log[offset])[1] != number:
            where = f"not at offset {offset} of partition {partition}"
            self.break_law("acknowledged and lost", f"record {number} is {where}")

    # ---- assignments -------------------------------------------------------------

    def began(self, session: Session) -> None:
        """A consumer came to life."""
        self._sessions.append(session)

    def assigned(self, session: Session, partitions: Collection[int]) -> None:
        """Partitions were assigned to a session."""
        for partition in sorted(partitions):
            if partition in session.held:
                self._break("assigned twice", session, partition, "without an end")
            for other in self._sessions:
                if other is not session and partition in other.held:
                    self._check_loser(other, session, partition)
            session.held[partition] = Held()

    def _check_loser(self, session: Session, heir: Session, partition: int) -> None:
        """Somebody still believes to have what was given to another."""
        if self._is_member(session):
            self._break("two owners", heir, partition, f"and {session.name}")
        self._excuse(partition)  # it could not commit any more

    def _is_member(self, session: Session) -> bool:
        """Whether the group goes on with a session, as its coordinator sees it."""
        return self._cluster.is_member(session.member_id())

    def asked_back(self, session: Session, partitions: Collection[int]) -> None:
        """The user was told that partitions are given up; nothing else comes."""
        for partition in partitions:
            held = session.held.get(partition)
            if held is None:
                self._break("revoked and not held", session, partition, "revoked")
            else:
                held.is_asked_back = True

    def told_group(self, session: Session, still: Collection[int] = ()) -> None:
        """The session told its group what it still has: the rest is given up."""
        for partition, held in list(session.held.items()):
            if held.is_asked_back and partition not in still:
                self._end(session, partition)

    def lost(self, session: Session, partitions: Collection[int]) -> None:
        """The user was told that partitions are gone."""
        for partition in partitions:
            self._excuse(partition)
            session.held.pop(partition, None)

    def over(self, session: Session, *, in_order: bool) -> None:
        """A session ended."""
        if session.is_over:
            return
        session.is_over = True
        self._sessions.remove(session)
        for partition in list(session.held):
            session.held[partition].is_doubtful |= not in_order
            self._end(session, partition)

    def _end(self, session: Session, partition: int) -> None:
        held = session.held.pop(partition)
        if held.is_doubtful or held.finished < held.expected:
            self._excuse(partition)
        elif held.expected >= self.frontier[partition]:
            self._excused[partition] = 0

    def disordered(self, session: Session) -> None:
        """A commit that had to come before an end has failed."""
        for held in session.held.values():
            held.is_doubtful = True

    def _excuse(self, partition: int) -> None:
        self._excused[partition] = self.frontier[partition]

    # ---- records -----------------------------------------------------------------

    def handed_out(
        self, session: Session, partition: int, offset: int, value: bytes | None
    ) -> None:
        """A consumer returned a record to its user."""
        self.delivered += 1
        held = session.held.get(partition)
        if held is None or held.is_asked_back:
            self._break("read and not held", session, partition, f"offset {offset}")
            return
        self._check_value(partition, offset, value)
        # The group may have gone on without it, which it cannot know yet. What it
        # reads then counts for nothing, but has to be in order as it is.
        is_member = self._is_member(session)
        if held.expected < 0:
            if is_member:
                self._check_start(session, partition, offset)
        elif offset != held.expected:
            what = f"offset {offset} instead of {held.expected}"
            self._break("out of order", session, partition, what)
        is_first = held.finished < 0
        held.expected = offset + 1
        held.finished = offset if is_first else held.finished
        if is_member:
            self._count(session, partition, offset)

    def _check_value(self, partition: int, offset: int, value: bytes | None) -> None:
        if offset >= len(self._logs[partition]):
            self.read_logs()
        log = self._logs[partition]
        there = log[offset] if offset < len(log) else None
        if value != there:
            where = f"at offset {offset} of partition {partition}"
            self.break_law("not what was written", f"{value!r}, {there!r} {where}")

    def _check_start(self, session: Session, partition: int, offset: int) -> None:
        start = max(0, self._cluster.committed(partition))
        if offset != start:
            what = f"offset {offset}, committed is {start}"
            self._break("wrong start", session, partition, what)

    def _count(self, session: Session, partition: int, offset: int) -> None:
        frontier = self.frontier[partition]
        if offset < frontier:
            self.repeated += 1
        if offset > frontier:
            what = f"offset {offset}, after {frontier - 1}"
            self._break("left out", session, partition, what)
        elif offset < frontier and offset >= self._excused[partition]:
            what = f"offset {offset}, though all to {frontier} was finished"
            self._break("repeated without need", session, partition, what)
        self.frontier[partition] = max(frontier, offset + 1)

    def finished(self, session: Session) -> None:
        """The user is done with all that was handed out."""
        for held in session.held.values():
            held.finished = max(held.finished, held.expected)

    def sought(self, session: Session, partition: int, offset: int) -> None:
        """The user goes to an offset of a partition."""
        held = session.held[partition]
        held.expected = held.finished = offset
        self._excuse(partition)

    # ---- commits -----------------------------------------------------------------

    def committing(self, session: Session, offsets: dict[int, int]) -> None:
        """A commit left the client."""
        for partition, offset in offsets.items():
            held = session.held.get(partition)
            if held is None:
                what = f"offset {offset}"
                self._break("committed and given up", session, partition, what)
                continue
            limit = max(held.finished, self._cluster.committed(partition), 0)
            if offset > limit:
                what = f"offset {offset}, finished are those before {limit}"
                self._break("committed too much", session, partition, what)

    def unread(self) -> dict[int, int]:
        """How many records of each partition nobody has read yet."""
        self.read_logs()
        left = {p: len(log) - self.frontier[p] for p, log in enumerate(self._logs)}
        return {partition: count for partition, count in left.items() if count}

    def uncommitted(self) -> dict[int, int]:
        """How many records of each partition are not committed."""
        logs = enumerate(self._logs)
        left = {p: len(log) - max(0, self._cluster.committed(p)) for p, log in logs}
        return {partition: count for partition, count in left.items() if count}

    def _break(self, law: str, session: Session, partition: int, what: str) -> None:
        self.break_law(law, f"{session.name}, partition {partition}: {what}")


def _parse(value: bytes) -> tuple[str, int]:
    key, _, number = value.decode().rpartition(":")
    return key, int(number)
