"""Tracks the revocation of each assigned partition: deferred revocation (KIP-983).

Every assignment of a partition has a number that is never used again. So nothing that
belongs to an old assignment (a commit, a hold, a callback) can touch a later one of the
same partition. `TRANSITIONS` has the stages of an assignment::

    ASSIGNED -> REQUESTED -> REPORTED -> READY -> COMPLETING -> REVOKED

The group requests the revocation (REQUESTED). The application learns of it (REPORTED)
and may delay it (DELAYED). The application's next step, a poll or the next record of an
iterator, releases the partition (READY). The last commit and the user's callback follow
(COMPLETING). A partition can be LOST in each of these stages.

Holds are counted beside the stages: any number may be taken until COMPLETING, and while
there is one, the partition stays READY. Its deadline passes all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import TopicPartition


class Stage(Enum):
    """How far the revocation of an assignment has come."""

    ASSIGNED = auto()  #: owned, and no revocation is requested
    REQUESTED = auto()  #: the group requested it; the application does not know yet
    REPORTED = auto()  #: the application knows; its next step releases the partition
    DELAYED = auto()  #: the next step does not release it, the one after it may
    READY = auto()  #: released; it waits until no hold is left
    COMPLETING = auto()  #: the last commit and the user's callback are under way
    REVOKED = auto()  #: no longer owned, after its commit
    LOST = auto()  #: no longer owned, without a commit or after the deadline


class Move(Enum):
    """An input that moves an assignment to another stage."""

    REQUEST = auto()  #: the group requests the revocation
    REPORT = auto()  #: the application learns of it
    DELAY = auto()  #: the application asks for one step more
    STEP = auto()  #: the application asks for more records
    RELEASE = auto()  #: the application has no record of it: no step is needed
    LEAVE = auto()  #: the application leaves the group: no further step will come
    BEGIN = auto()  #: no hold is left
    COMPLETE = auto()  #: the commit and the callback have ended
    LOSE = auto()  #: the deadline passed, or the group removed the member


_WAITING: Final = (Stage.REQUESTED, Stage.REPORTED)
_OWNED: Final = tuple(s for s in Stage if s not in {Stage.REVOKED, Stage.LOST})

#: Where each move leads; a pair that is not listed changes nothing.
TRANSITIONS: Final[Mapping[tuple[Stage, Move], Stage]] = MappingProxyType(
    {
        (Stage.ASSIGNED, Move.REQUEST): Stage.REQUESTED,
        (Stage.REQUESTED, Move.REPORT): Stage.REPORTED,
        (Stage.REPORTED, Move.STEP): Stage.READY,
        (Stage.DELAYED, Move.STEP): Stage.REPORTED,
        # READY may still wait for a hold, so a delay is not too late.
        **{(s, Move.DELAY): Stage.DELAYED for s in (*_WAITING, Stage.READY)},
        **{(s, Move.RELEASE): Stage.READY for s in _WAITING},
        **{(s, Move.LEAVE): Stage.READY for s in (*_WAITING, Stage.DELAYED)},
        (Stage.READY, Move.BEGIN): Stage.COMPLETING,
        (Stage.COMPLETING, Move.COMPLETE): Stage.REVOKED,
        **{(stage, Move.LOSE): Stage.LOST for stage in _OWNED},
    }
)


class Claim(NamedTuple):
    """One assignment of one partition."""

    partition: TopicPartition
    number: int


@dataclass(slots=True)
class _OwnedPartition:
    """One assignment, and how far its revocation has come."""

    number: int
    stage: Stage = Stage.ASSIGNED
    deadline: float = float("inf")
    holds: int = 0

    def move(self, by: Move) -> bool:
        """Go to the stage that the move leads to; False if it leads to none."""
        to = TRANSITIONS.get((self.stage, by))
        if to is None:
            return False
        self.stage = to
        return True


class RevokeLedger:
    """The partitions that a member owns, and the pending revocations among them.

    A partition is *pending* from the request of its revocation to its end.

    Attributes:
        version: counts the changes; as long as it stays the same, so do the numbers of
            all assignments.
    """

    __slots__ = ("_entries", "_numbers", "_pending", "_serial", "_topics", "version")

    def __init__(self) -> None:
        # Invariant: a key is removed by complete(), expire() or lose(), and returned by
        # the one that removed it. So each assignment ends exactly once.
        self._entries: dict[TopicPartition, _OwnedPartition] = {}
        self._serial = 0
        self.version: int = 0
        # Cached results, None after a change. The reader asks for the first two per
        # batch, and each commit asks for the topics.
        self._numbers: dict[TopicPartition, int] | None = None
        self._pending: frozenset[TopicPartition] | None = None
        self._topics: frozenset[str] | None = None

    # ---- reading -----------------------------------------------------------------

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Everything assigned, pending revocations included."""
        return frozenset(self._entries)

    @property
    def topics(self) -> frozenset[str]:
        """The topics of everything assigned."""
        if self._topics is None:
            self._topics = frozenset(tp.topic for tp in self._entries)
        return self._topics

    @property
    def pending(self) -> frozenset[TopicPartition]:
        """The partitions whose revocation was requested and is not complete."""
        if self._pending is None:
            self._pending = frozenset(
                tp
                for tp, entry in self._entries.items()
                if entry.stage is not Stage.ASSIGNED
            )
        return self._pending

    @property
    def next_to_go(self) -> frozenset[TopicPartition]:
        """The pending partitions that the application's next step releases.

        Delayed partitions are not among them until the step before, nor are those
        whose last commit is under way. A hold makes no difference.
        """
        return frozenset(
            tp
            for tp in self.pending
            if self._entries[tp].stage not in {Stage.DELAYED, Stage.COMPLETING}
        )

    @property
    def numbers(self) -> dict[TopicPartition, int]:
        """The number of each assignment; a new dict after each change, never edited."""
        if self._numbers is None:
            self._numbers = {tp: entry.number for tp, entry in self._entries.items()}
        return self._numbers

    def stage(self, partition: TopicPartition) -> Stage | None:
        """How far the revocation has come; None if the partition is not assigned."""
        entry = self._entries.get(partition)
        return None if entry is None else entry.stage

    def claims(self, partitions: Iterable[TopicPartition]) -> tuple[Claim, ...]:
        """The assignments of those partitions that are assigned."""
        return tuple(
            Claim(tp, entry.number)
            for tp in partitions
            if (entry := self._entries.get(tp)) is not None
        )

    def deadline(self, partition: TopicPartition) -> float:
        """When an assigned partition is lost; infinite if it is not pending."""
        return self._entries[partition].deadline

    def next_deadline(self) -> float | None:
        """When `expire` has to be called; None if nothing is pending."""
        return min((self._entries[tp].deadline for tp in self.pending), default=None)

    # ---- the group ---------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Own these. Returns those that were not owned before."""
        added = frozenset(tp for tp in partitions if tp not in self._entries)
        for tp in sorted(added):
            self._serial += 1
            self._entries[tp] = _OwnedPartition(self._serial)
        self._changed()
        return added

    def request(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> frozenset[TopicPartition]:
        """Request the revocation of these. Returns those that were not pending before.

        A deadline in force is never extended, only brought forward.
        """
        requested = set[TopicPartition]()
        for tp in partitions:
            if (entry := self._entries.get(tp)) is None:
                continue
            entry.deadline = min(entry.deadline, deadline)
            if entry.move(Move.REQUEST):
                requested.add(tp)
        self._changed()
        return frozenset(requested)

    def expire(self, now: float) -> frozenset[TopicPartition]:
        """Lose the partitions past their deadline, held or not. Returns them."""
        return self.lose(
            [tp for tp in self.pending if self._entries[tp].deadline <= now]
        )

    def lose(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> frozenset[TopicPartition]:
        """Lose these (None: everything), whatever their stage."""
        chosen = list(self._entries) if partitions is None else partitions
        return self._end(chosen, Move.LOSE)

    # ---- the application ---------------------------------------------------------

    def report(self) -> None:
        """The application knows of everything requested so far."""
        self._move_pending(Move.REPORT)

    def delay(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Let the next step pass without releasing these.

        Returns:
            Those for which it is too late: no longer assigned, or with their last
            commit under way. A partition that is not pending stays as it is, and is
            not among them.
        """
        late = set[TopicPartition]()
        for tp in partitions:
            entry = self._entries.get(tp)
            if entry is None or entry.stage is Stage.COMPLETING:
                late.add(tp)
            else:
                entry.move(Move.DELAY)
        return frozenset(late)

    def hold(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Keep these assignments until `unhold`, or until their deadline.

        A hold may be taken before a revocation is requested.

        Returns:
            Those that are held from now on. The others have ended, or their last
            commit is under way.
        """
        held = list[Claim]()
        for claim in claims:
            entry = self._current(claim)
            if entry is not None and entry.stage is not Stage.COMPLETING:
                entry.holds += 1
                held.append(claim)
        return tuple(held)

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these; assignments that have ended are ignored."""
        for claim in claims:
            entry = self._current(claim)
            if entry is not None:
                entry.holds -= 1

    def step(self) -> None:
        """The application took a step: reported revocations that are not delayed go on.

        Held partitions are released by it as well, and wait for the end of the hold.
        """
        self._move_pending(Move.STEP)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """No step is needed for these; partitions that are not pending are ignored."""
        for tp in partitions:
            if (entry := self._entries.get(tp)) is not None:
                entry.move(Move.RELEASE)

    def leave(self) -> None:
        """The application leaves: no step is needed for what was requested so far."""
        self._move_pending(Move.LEAVE)

    # ---- the end of a revocation -------------------------------------------------

    def begin(self) -> tuple[tuple[Claim, ...], float]:
        """Begin to complete the revocations that are released and not held.

        Returns:
            The assignments, and the earliest of their deadlines (infinite for none).
        """
        claims, deadline = list[Claim](), float("inf")
        for tp in sorted(self.pending):
            entry = self._entries[tp]
            if not entry.holds and entry.move(Move.BEGIN):
                deadline = min(deadline, entry.deadline)
                claims.append(Claim(tp, entry.number))
        return tuple(claims), deadline

    def complete(self, claims: Iterable[Claim]) -> frozenset[TopicPartition]:
        """End these revocations. Returns those that were not lost in the meantime."""
        return self._end(
            [claim.partition for claim in claims if self._current(claim)],
            Move.COMPLETE,
        )

    def _current(self, claim: Claim) -> _OwnedPartition | None:
        entry = self._entries.get(claim.partition)
        return entry if entry is not None and entry.number == claim.number else None

    def _move_pending(self, by: Move) -> None:
        for tp in self.pending:
            self._entries[tp].move(by)

    def _end(
        self, partitions: Iterable[TopicPartition], by: Move
    ) -> frozenset[TopicPartition]:
        gone = frozenset(
            tp
            for tp in partitions
            if (entry := self._entries.get(tp)) is not None and entry.move(by)
        )
        for tp in gone:
            del self._entries[tp]
        self._changed()
        return gone

    def _changed(self) -> None:
        self.version += 1
        self._numbers = self._pending = self._topics = None
