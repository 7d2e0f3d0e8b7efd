"""Checks that nothing is lost, repeated, reordered or owned twice.

The checker is told of every record that is sent, acknowledged, returned and finished,
of every assignment, and of every commit as it leaves a client. It compares them with
the logs and the committed offsets of the cluster. The laws are what users may rely on:

- An acknowledged record is in the log, once, at the place that was reported.
- A consumer returns consecutive offsets, from the committed one on. A record comes
  again only if a crash, a loss, a failed or a late commit, or a seek explains it.
- No two members of the group own one partition.
- Only finished records are committed, and only by the owner of the partition.
- A partition that its user holds is not revoked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import Protocol

from tests.sim.late_commits import LateCommits
from tests.sim.ordered_work import OrderedWork
from tests.sim.violation import Violation

__all__ = ["Checker", "Cluster", "Held", "Session"]


class Cluster(Protocol):
    """What the checker reads from the cluster."""

    def written(self, partition: int, start: int) -> list[bytes]:
        """The values in a partition's log from an offset on."""

    def committed(self, partition: int) -> int:
        """The group's committed offset, -1 for none."""

    def is_member(self, member_id: str) -> bool:
        """Whether the group coordinator has a member of this id."""


@dataclass(slots=True, eq=False)
class Held:
    """One assignment of one partition to one session.

    Attributes:
        since: when it was assigned.
        expected: the next offset to be returned, -1 before the first record.
        finished: offsets before it may be committed, -1 before the first record.
        reached: the largest ``finished`` before a seek backwards.
        is_revoked: whether the user was told that the partition is revoked.
        is_commit_uncertain: whether the commit of finished records may have failed.
        has_seeked: whether the user went to another offset.
        is_uncounted: whether the last records were returned while the coordinator did
            not have the member. A member that was removed from a classic group is back
            if the coordinator moves before the other members have joined, because the
            removal is not in the group's log until then.
        keeps: the number of reasons for which the user keeps it: holds, delays, records
            in work.
        is_revoke_requested: whether the user can know that the group requests it.
        deadline: the time by which the partition is lost.
        work_order: the records in work, for users who work on several at a time.
        quiet: the time since which records are there and none has come; infinity
            unless the user waits for one.
    """

    since: float = 0.0
    expected: int = -1
    finished: int = -1
    reached: int = -1
    is_revoked: bool = False
    is_commit_uncertain: bool = False
    has_seeked: bool = False
    is_uncounted: bool = False
    keeps: int = 0
    is_revoke_requested: bool = False
    deadline: float = float("inf")
    work_order: OrderedWork | None = None
    quiet: float = float("inf")


@dataclass(slots=True, eq=False)
class Session:
    """One consumer, from its start to its end, as its user sees it.

    Attributes:
        name: its client id.
        member_id: its id in the group.
        to_be_revoked: the partitions whose revocation is requested.
        joins_as: the member id in its last JoinGroup request.
        held: its partitions.
        is_at_work: whether its only reader processes records, and so does not read.
        patience: the time until which it may keep its partitions while it closes.
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
    # One record, as its producer knows it; the place is set when it is acknowledged.
    place: tuple[int, int] | None = None
    has_failed: bool = False


class Checker:
    """Records what happens, and checks every law at each step.

    Values of records are ``key:number``; numbers count all records from 0.

    Args:
        cluster: the logs and the committed offsets.
        partitions: how many there are.
        clock: returns the time.
        violated: called with every broken law.
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
        #: By partition, the offset before which all were returned at least once.
        self.frontier = [0] * partitions
        # By partition, the offset before which a record may come again.
        self._excused = [0] * partitions
        self._late_commits = LateCommits()
        self._sent: list[_Sent] = []
        self._last_written = [-1] * partitions
        # The partitions that each key was found in, and the largest allowed number.
        self._homes: dict[str, set[int]] = {}
        self._most_homes = 1
        self.sessions: list[Session] = []
        self.delivered = self.repeated = self.acknowledged = self.failed = 0

    def break_law(self, law: str, detail: str) -> None:
        """Report that a law was broken."""
        self._violated(Violation(self._clock(), law, detail))

    def grew(self, count: int) -> None:
        """Partitions were added: a key may now belong to another partition."""
        self._most_homes += 1
        for _ in range(count):
            self._logs.append([])
            self.frontier.append(0)
            self._excused.append(0)
            self._last_written.append(-1)

    # ---- producers ---------------------------------------------------------------

    def sent(self) -> int:
        """A record is about to be enqueued; return its number."""
        self._sent.append(_Sent())
        return len(self._sent) - 1

    def acked(self, number: int, place: tuple[int, int]) -> None:
        """A record was acknowledged, at a partition and offset."""
        self.acknowledged += 1
        self._sent[number].place = place

    def failed_to_send(self, number: int) -> None:
        """A delivery failed: the record may have been written or not."""
        self.failed += 1
        self._sent[number].has_failed = True

    def read_logs(self) -> None:
        """Check what was written since the last call."""
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
        """Check that every acknowledged record is at the place that was reported.

        Every other record must have been reported as failed.
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
        """A consumer was created."""
        self.sessions.append(session)

    def assigned(self, session: Session, partitions: Collection[int]) -> None:
        """Partitions were assigned to a session."""
        for partition in sorted(partitions):
            if partition in session.held:
                # Revoked, but assigned again before the group heard of the revocation.
                if not session.held[partition].is_revoked:
                    self._break("assigned twice", session, partition, "without an end")
                self._end(session, partition)
            for other in self.sessions:
                if other is not session and partition in other.held:
                    self._check_loser(other, session, partition)
            session.held[partition] = Held(since=self._clock())

    def _check_loser(self, session: Session, heir: Session, partition: int) -> None:
        """A session still holds a partition that was assigned to another one."""
        if self._is_member(session):
            self._break("two owners", heir, partition, f"and {session.name}")
        self._excuse(partition)  # the loser could no longer commit

    def _is_member(self, session: Session) -> bool:
        """Whether the group coordinator has the session's member."""
        return self._cluster.is_member(session.member_id())

    def revoked(self, session: Session, partitions: Collection[int]) -> None:
        """The user was told that partitions are revoked.

        No reason to keep them may be left, and no further record may come.
        """
        for partition in partitions:
            held = session.held.get(partition)
            if held is None:
                self._break("revoked and not assigned", session, partition, "revoked")
                continue
            held.is_revoked = True
            # Closing does not wait for a single reader; its record comes again.
            is_left = session.is_at_work and session.patience < float("inf")
            is_busy = held.keeps or (held.finished < held.expected and not is_left)
            if is_busy and self._clock() < session.patience:
                what = f"{held.keeps} times, finished to {held.finished}"
                self._break("revoked while in use", session, partition, what)

    def reported(self, session: Session, still: Collection[int] = ()) -> None:
        """The session reported its partitions to the group; it released the rest."""
        for partition, held in list(session.held.items()):
            if held.is_revoked and partition not in still:
                self._end(session, partition)

    def lost(self, session: Session, partitions: Collection[int]) -> None:
        """The user was told that partitions are lost."""
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
            session.held[partition].is_commit_uncertain |= not in_order
            self._end(session, partition)

    def _end(self, session: Session, partition: int) -> None:
        held = session.held.pop(partition)
        if held.is_commit_uncertain or held.finished < held.expected:
            self._excuse(partition)
        elif held.expected >= self.frontier[partition]:
            self._excused[partition] = 0

    def commit_failed_for(
        self, session: Session, partitions: Collection[int] | None = None
    ) -> None:
        """A commit before a revocation or a close failed; of all or some partitions."""
        for partition, held in session.held.items():
            held.is_commit_uncertain |= partitions is None or partition in partitions

    def commit_succeeded(self, session: Session, partitions: Collection[int]) -> None:
        """All finished records of these partitions are committed."""
        for partition in partitions:
            held = session.held.get(partition)
            # A commit after it was revoked does not cover it.
            if held is not None and not held.is_revoked:
                held.is_commit_uncertain = False

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
            held.is_uncounted = True

    def _came(
        self, session: Session, partition: int, offset: int, value: bytes | None
    ) -> Held | None:
        self.delivered += 1
        held = session.held.get(partition)
        if held is None or held.is_revoked:
            self._break("read and not assigned", session, partition, f"offset {offset}")
            return None
        self._check_value(partition, offset, value)
        held.quiet = float("inf")
        # The group may have removed the member, which cannot know that yet. The records
        # that it reads then do not count, but they must still be in order.
        if held.expected < 0 and self._is_member(session):
            self._check_start(session, partition, offset)
        held.finished = offset if held.finished < 0 else held.finished
        return held

    def begun(
        self,
        session: Session,
        partition: int,
        record: tuple[int, bytes | None],
        order_key: Hashable,
    ) -> Held | None:
        """Work begins on a record, beside work on others.

        Args:
            session: whose user works.
            partition: the record's partition.
            record: its offset and value.
            order_key: records of one key must be worked on in order.
        """
        offset, value = record
        held = self._came(session, partition, offset, value)
        if held is None:
            return None
        if held.work_order is None:
            held.work_order = OrderedWork(offset)
        if wrong := held.work_order.begin(offset, order_key):
            self._break("out of order", session, partition, f"offset {offset} {wrong}")
        held.expected = max(held.expected, offset + 1)
        return held

    def done(self, session: Session, partition: int, held: Held, offset: int) -> None:
        """Work on a record that was begun is done."""
        assert held.work_order is not None
        finished = held.work_order.done(offset)
        held.finished = held.work_order.done_to
        if session.held.get(partition) is not held:
            return
        if self._is_member(session):
            for one in finished:
                self._count(session, partition, one)
        else:
            held.is_uncounted = True

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
        is_late = self._late_commits.may_be(partition, start)
        if is_late and start < self.frontier[partition]:
            self._excuse(partition)
        elif offset != start:
            what = f"offset {offset}, committed is {start}"
            self._break("wrong start", session, partition, what)
        self._read_to(partition)

    def _read_to(self, partition: int) -> int:
        """Return the offset before which every record was returned at least once.

        Committed records were returned, because commits are checked; possibly to a
        member that was removed and is back, whose records were not counted meanwhile.
        """
        read = max(self.frontier[partition], self._cluster.committed(partition))
        self.frontier[partition] = read
        return read

    def _count(self, session: Session, partition: int, offset: int) -> None:
        frontier = self.frontier[partition]
        if offset < frontier:
            self.repeated += 1
        held = session.held[partition]
        is_back, held.is_uncounted = held.is_uncounted, False
        if offset > frontier and not is_back:
            what = f"offset {offset}, after {frontier - 1}"
            self._break("record skipped", session, partition, what)
        elif offset < frontier and offset >= self._excused[partition]:
            what = f"offset {offset}, though all to {frontier} was finished"
            self._break("repeated without need", session, partition, what)
        self.frontier[partition] = max(frontier, offset + 1)

    def finished(
        self, session: Session, partitions: Collection[int] | None = None
    ) -> None:
        """The user has finished what was returned so far; of all or some partitions."""
        for partition, held in session.held.items():
            is_meant = partitions is None or partition in partitions
            if is_meant and not held.is_revoked:  # too late after that
                held.finished = max(held.finished, held.expected)

    def seeked(self, session: Session, partition: int, offset: int) -> None:
        """The user seeks an offset of a partition."""
        held = session.held[partition]
        # A commit of what was finished may be in flight.
        held.reached = max(held.reached, held.finished)
        held.expected = held.finished = offset
        held.has_seeked = True
        self._excuse(partition)

    # ---- commits -----------------------------------------------------------------

    def committing(
        self, session: Session, offsets: dict[int, int], is_open: Callable[[], bool]
    ) -> None:
        """A commit request left the client.

        Args:
            session: whose consumer commits.
            offsets: the offsets, by partition.
            is_open: whether the connection it was sent on is still open.
        """
        for partition, offset in offsets.items():
            held = session.held.get(partition)
            if held is None:
                what = f"offset {offset}"
                self._break("committed after release", session, partition, what)
                continue
            committed = self._cluster.committed(partition)
            self._late_commits.sent(partition, offset, committed, is_open)
            limit = max(held.finished, held.reached, committed, 0)
            if offset > limit:
                what = f"offset {offset}, finished are those before {limit}"
                self._break("committed too much", session, partition, what)
            is_back = offset < committed and not held.has_seeked
            if is_back and self._is_member(session):
                what = f"offset {offset}, committed is {committed}"
                self._break("committed less", session, partition, what)

    def unread(self) -> dict[int, int]:
        """The number of records of each partition that nobody has read yet."""
        self.read_logs()
        left = {p: len(log) - self._read_to(p) for p, log in enumerate(self._logs)}
        return {partition: count for partition, count in left.items() if count}

    def uncommitted(self) -> dict[int, int]:
        """The number of records of each partition that are not committed."""
        logs = enumerate(self._logs)
        left = {p: len(log) - max(0, self._cluster.committed(p)) for p, log in logs}
        return {partition: count for partition, count in left.items() if count}

    def unassigned(self) -> dict[int, int]:
        """The owners of each partition that does not have exactly one settled owner."""
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
