"""What was written, handed out and committed, and the laws that it has to obey."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import Protocol

from kafkaio.testing.simulation.stragglers import Stragglers
from kafkaio.testing.simulation.strands import Strands
from kafkaio.testing.simulation.violation import Violation

__all__ = ["Book", "Cluster", "Held", "Session"]


class Cluster(Protocol):
    """What the book asks of the cluster."""

    def written(self, partition: int, start: int) -> list[bytes]:
        """The values in a partition's log from an offset on."""

    def committed(self, partition: int) -> int:
        """The group's committed offset, -1 for none."""

    def is_member(self, member_id: str) -> bool:
        """Whether the group's coordinator takes somebody for a member."""


@dataclass(slots=True, eq=False)
class Held:
    """One assignment of one partition to one session.

    Attributes:
        since: when it was assigned.
        expected: the offset that has to come next, -1 until something came.
        finished: offsets before it may be committed, -1 until something came.
        reached: offsets before it were finished once, though the user went back.
        is_asked_back: whether the user was told that it is given up now.
        is_doubtful: whether what is finished may not have been committed at the end.
        is_sought: whether the user went to another offset.
        is_shunned: whether what came last counted for nothing. A member that was thrown
            out of a classic group is one again if the coordinator moves before the
            others have joined, for until then nothing of it is written down.
        keeps: how many reasons the user has to keep it: holds, delays, work in hand.
        is_requested: whether the user can know that the group asks for it.
        deadline: when it is lost at the latest.
        strands: what is worked on, where that is many at a time.
        quiet: since when there are records, and none has come; infinite where that is
            as it should be.
    """

    since: float = 0.0
    expected: int = -1
    finished: int = -1
    reached: int = -1
    is_asked_back: bool = False
    is_doubtful: bool = False
    is_sought: bool = False
    is_shunned: bool = False
    keeps: int = 0
    is_requested: bool = False
    deadline: float = float("inf")
    strands: Strands | None = None
    quiet: float = float("inf")


@dataclass(slots=True, eq=False)
class Session:
    """The life of one consumer, as its user sees it.

    Attributes:
        name: its client id.
        member_id: who it is to the group.
        to_be_revoked: what its consumer says that the group asks for.
        joins_as: who it said it is, when it last asked a classic group to let it in.
        held: what it has, by partition.
        is_at_work: whether its only reader works, and does not read.
        patience: until when it may keep what it has; it is about to close.
        is_over: whether its consumer was closed, or its process ended.
    """

    name: str
    member_id: Callable[[], str] = str
    to_be_revoked: Callable[[], Collection[int]] = tuple
    joins_as: str = ""
    held: dict[int, Held] = field(default_factory=dict)
    is_at_work: bool = False
    patience: float = float("inf")
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
        self._stragglers = Stragglers()
        self._sent: list[_Sent] = []
        self._last_written = [-1] * partitions
        # The partitions that each key was found in, and how many that may be.
        self._homes: dict[str, set[int]] = {}
        self._most_homes = 1
        self.sessions: list[Session] = []
        self.delivered = self.repeated = self.acknowledged = self.failed = 0

    def break_law(self, law: str, detail: str) -> None:
        """Note that a law was broken."""
        self._violated(Violation(self._clock(), law, detail))

    def grew(self, count: int) -> None:
        """There are more partitions: where a key belongs may have changed."""
        self._most_homes += 1
        for _ in range(count):
            self._logs.append([])
            self.frontier.append(0)
            self._excused.append(0)
            self._last_written.append(-1)

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
        homes = self._homes.setdefault(key, set())
        homes.add(partition)
        if len(homes) > self._most_homes:
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
        self.sessions.append(session)

    def assigned(self, session: Session, partitions: Collection[int]) -> None:
        """Partitions were assigned to a session."""
        for partition in sorted(partitions):
            if partition in session.held:
                # Given up, but assigned anew before the group could hear of that.
                if not session.held[partition].is_asked_back:
                    self._break("assigned twice", session, partition, "without an end")
                self._end(session, partition)
            for other in self.sessions:
                if other is not session and partition in other.held:
                    self._check_loser(other, session, partition)
            session.held[partition] = Held(since=self._clock())

    def _check_loser(self, session: Session, heir: Session, partition: int) -> None:
        """Somebody still believes to have what was given to another."""
        if self._is_member(session):
            self._break("two owners", heir, partition, f"and {session.name}")
        self._excuse(partition)  # it could not commit any more

    def _is_member(self, session: Session) -> bool:
        """Whether the group goes on with a session, as its coordinator sees it."""
        return self._cluster.is_member(session.member_id())

    def asked_back(self, session: Session, partitions: Collection[int]) -> None:
        """The user was told that partitions are given up; nothing else comes.

        So there must be no reason left to keep them.
        """
        for partition in partitions:
            held = session.held.get(partition)
            if held is None:
                self._break("revoked and not held", session, partition, "revoked")
                continue
            held.is_asked_back = True
            # Closing waits for no single reader, whose record comes again.
            is_left = session.is_at_work and session.patience < float("inf")
            is_busy = held.keeps or (held.finished < held.expected and not is_left)
            if is_busy and self._clock() < session.patience:
                what = f"{held.keeps} times, finished to {held.finished}"
                self._break("given up and kept", session, partition, what)

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
        self.sessions.remove(session)
        for partition in list(session.held):
            session.held[partition].is_doubtful |= not in_order
            self._end(session, partition)

    def _end(self, session: Session, partition: int) -> None:
        held = session.held.pop(partition)
        if held.is_doubtful or held.finished < held.expected:
            self._excuse(partition)
        elif held.expected >= self.frontier[partition]:
            self._excused[partition] = 0

    def disordered(
        self, session: Session, partitions: Collection[int] | None = None
    ) -> None:
        """A commit that had to come before an end has failed; of all, or of some."""
        for partition, held in session.held.items():
            held.is_doubtful |= partitions is None or partition in partitions

    def caught_up(self, session: Session, partitions: Collection[int]) -> None:
        """All that is finished of these was committed after all."""
        for partition in partitions:
            held = session.held.get(partition)
            # A commit after it was revoked does not cover it.
            if held is not None and not held.is_asked_back:
                held.is_doubtful = False

    def _excuse(self, partition: int) -> None:
        self._excused[partition] = self.frontier[partition]

    # ---- records -----------------------------------------------------------------

    def handed_out(
        self, session: Session, partition: int, offset: int, value: bytes | None
    ) -> None:
        """A consumer returned a record to its user."""
        held = self._came(session, partition, offset, value)
        if held is None:
            return
        if held.expected not in {-1, offset}:
            what = f"offset {offset} instead of {held.expected}"
            self._break("out of order", session, partition, what)
        held.expected = offset + 1
        if self._is_member(session):
            self._count(session, partition, offset)
        else:
            held.is_shunned = True

    def _came(
        self, session: Session, partition: int, offset: int, value: bytes | None
    ) -> Held | None:
        self.delivered += 1
        held = session.held.get(partition)
        if held is None or held.is_asked_back:
            self._break("read and not held", session, partition, f"offset {offset}")
            return None
        self._check_value(partition, offset, value)
        held.quiet = float("inf")
        # The group may have gone on without it, which it cannot know yet. What it
        # reads then counts for nothing, but has to be in order as it is.
        if held.expected < 0 and self._is_member(session):
            self._check_start(session, partition, offset)
        held.finished = offset if held.finished < 0 else held.finished
        return held

    def begun(
        self,
        session: Session,
        partition: int,
        record: tuple[int, bytes | None],
        strand: Hashable,
    ) -> Held | None:
        """One of many records that are worked on at a time is begun.

        Args:
            session: who works.
            partition: the record's partition.
            record: its offset and value.
            strand: what it has to come in order with.
        """
        offset, value = record
        held = self._came(session, partition, offset, value)
        if held is None:
            return None
        if held.strands is None:
            held.strands = Strands(offset)
        if wrong := held.strands.begin(offset, strand):
            self._break("out of order", session, partition, f"offset {offset} {wrong}")
        held.expected = max(held.expected, offset + 1)
        return held

    def done(self, session: Session, partition: int, held: Held, offset: int) -> None:
        """One of many that were begun is done."""
        assert held.strands is not None
        finished = held.strands.done(offset)
        held.finished = held.strands.done_to
        if session.held.get(partition) is not held:
            return
        if self._is_member(session):
            for one in finished:
                self._count(session, partition, one)
        else:
            held.is_shunned = True

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
        is_late = self._stragglers.may_be(partition, start)
        if is_late and start < self.frontier[partition]:
            self._excuse(partition)
        elif offset != start:
            what = f"offset {offset}, committed is {start}"
            self._break("wrong start", session, partition, what)
        self._read_to(partition)

    def _read_to(self, partition: int) -> int:
        """All before it was handed out at least once.

        What is committed was, for that is checked: by a member, it may be, that was
        thrown out and is one again, of which nothing was counted meanwhile.
        """
        read = max(self.frontier[partition], self._cluster.committed(partition))
        self.frontier[partition] = read
        return read

    def _count(self, session: Session, partition: int, offset: int) -> None:
        frontier = self.frontier[partition]
        if offset < frontier:
            self.repeated += 1
        held = session.held[partition]
        is_back, held.is_shunned = held.is_shunned, False
        if offset > frontier and not is_back:
            what = f"offset {offset}, after {frontier - 1}"
            self._break("left out", session, partition, what)
        elif offset < frontier and offset >= self._excused[partition]:
            what = f"offset {offset}, though all to {frontier} was finished"
            self._break("repeated without need", session, partition, what)
        self.frontier[partition] = max(frontier, offset + 1)

    def finished(
        self, session: Session, partitions: Collection[int] | None = None
    ) -> None:
        """The user is done with all that was handed out; of all, or of some."""
        for partition, held in session.held.items():
            is_meant = partitions is None or partition in partitions
            if is_meant and not held.is_asked_back:  # else it is too late
                held.finished = max(held.finished, held.expected)

    def sought(self, session: Session, partition: int, offset: int) -> None:
        """The user goes to an offset of a partition."""
        held = session.held[partition]
        # A commit of what is finished may be under way.
        held.reached = max(held.reached, held.finished)
        held.expected = held.finished = offset
        held.is_sought = True
        self._excuse(partition)

    # ---- commits -----------------------------------------------------------------

    def committing(
        self, session: Session, offsets: dict[int, int], is_open: Callable[[], bool]
    ) -> None:
        """A commit left the client.

        Args:
            session: who commits.
            offsets: what, by partition.
            is_open: whether its client still has the connection that it left by.
        """
        for partition, offset in offsets.items():
            held = session.held.get(partition)
            if held is None:
                what = f"offset {offset}"
                self._break("committed and given up", session, partition, what)
                continue
            committed = self._cluster.committed(partition)
            self._stragglers.sent(partition, offset, committed, is_open)
            limit = max(held.finished, held.reached, committed, 0)
            if offset > limit:
                what = f"offset {offset}, finished are those before {limit}"
                self._break("committed too much", session, partition, what)
            is_back = offset < committed and not held.is_sought
            if is_back and self._is_member(session):
                what = f"offset {offset}, committed is {committed}"
                self._break("committed less", session, partition, what)

    def unread(self) -> dict[int, int]:
        """How many records of each partition nobody has read yet."""
        self.read_logs()
        left = {p: len(log) - self._read_to(p) for p, log in enumerate(self._logs)}
        return {partition: count for partition, count in left.items() if count}

    def uncommitted(self) -> dict[int, int]:
        """How many records of each partition are not committed."""
        logs = enumerate(self._logs)
        left = {p: len(log) - max(0, self._cluster.committed(p)) for p, log in logs}
        return {partition: count for partition, count in left.items() if count}

    def unsettled(self) -> dict[int, int]:
        """How many members have each partition that not one member has for good."""
        owners = dict.fromkeys(range(len(self._logs)), 0)
        pending = set[int]()
        for session in self.sessions:
            for partition in session.held:
                owners[partition] += 1
            pending.update(session.to_be_revoked())
        return {p: n for p, n in owners.items() if n != 1 or p in pending}

    def behind(self, partition: int, held: Held) -> bool:
        """Whether there are records that a session has not returned yet."""
        at = held.expected if held.expected >= 0 else self._cluster.committed(partition)
        return max(0, at) < len(self._logs[partition])

    def _break(self, law: str, session: Session, partition: int, what: str) -> None:
        self.break_law(law, f"{session.name}, partition {partition}: {what}")


def _parse(value: bytes) -> tuple[str, int]:
    key, _, number = value.decode().rpartition(":")
    return key, int(number)
