"""What becomes of each assigned partition: the heart of the deferred revoke (KIP-983).

Every assignment of a partition has a number that is never used again, so that nothing
which belongs to an old assignment (a commit, a hold, a callback) can touch a later one
of the same partition. `TRANSITIONS` tells the way of an assignment::

    ASSIGNED -> REQUESTED -> TOLD -> READY -> COMPLETING -> REVOKED

The group asks (REQUESTED), the user hears of it (TOLD) and may delay it (DELAYED), the
user's next step lets it go (READY), the last commit and the user's callback follow
(COMPLETING). It may be LOST from each of these. Beside the stages there are holds: any
number of them may be taken until COMPLETING, and while there is one, READY waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from kafkaio._dataclass import dataclass
from kafkaio.types import TopicPartition

__all__ = ["TRANSITIONS", "Claim", "Move", "RevokeLedger", "Stage"]


class Stage(Enum):
    """How far an assignment is on its way out."""

    ASSIGNED = auto()  #: ours, and nobody asks for it
    REQUESTED = auto()  #: the group asked for it back, the user has not heard of it
    TOLD = auto()  #: the user knows, and lets it go by the next step
    DELAYED = auto()  #: the user lets it go by the step after the next, if then
    READY = auto()  #: the user is done; it goes once nobody holds it
    COMPLETING = auto()  #: the last commit and the user's callback are under way
    REVOKED = auto()  #: given back
    LOST = auto()  #: gone without our consent, or too late


class Move(Enum):
    """What moves an assignment on."""

    REQUEST = auto()  #: the group asks for it back
    TELL = auto()  #: the user learns of that
    DELAY = auto()  #: the user wants one step more
    STEP = auto()  #: the user asks for more records
    RELEASE = auto()  #: the user has nothing to do with it: no step is needed
    PART = auto()  #: the user leaves the group: no step is needed, nor comes one
    BEGIN = auto()  #: nobody holds it any more
    COMPLETE = auto()  #: committed, and called back
    LOSE = auto()  #: the deadline passed, or the group went on without us


_WAITING: Final = (Stage.REQUESTED, Stage.TOLD)
_HERE: Final = tuple(s for s in Stage if s not in {Stage.REVOKED, Stage.LOST})

#: Where each move leads; a pair that is not listed changes nothing.
TRANSITIONS: Final[Mapping[tuple[Stage, Move], Stage]] = MappingProxyType(
    {
        (Stage.ASSIGNED, Move.REQUEST): Stage.REQUESTED,
        (Stage.REQUESTED, Move.TELL): Stage.TOLD,
        (Stage.TOLD, Move.STEP): Stage.READY,
        (Stage.DELAYED, Move.STEP): Stage.TOLD,
        # READY waits for a hold, so there is still something to delay.
        **{(s, Move.DELAY): Stage.DELAYED for s in (*_WAITING, Stage.READY)},
        **{(s, Move.RELEASE): Stage.READY for s in _WAITING},
        **{(s, Move.PART): Stage.READY for s in (*_WAITING, Stage.DELAYED)},
        (Stage.READY, Move.BEGIN): Stage.COMPLETING,
        (Stage.COMPLETING, Move.COMPLETE): Stage.REVOKED,
        **{(stage, Move.LOSE): Stage.LOST for stage in _HERE},
    }
)


class Claim(NamedTuple):
    """One assignment of one partition."""

    partition: TopicPartition
    number: int


@dataclass(slots=True)
class _Entry:
    number: int
    stage: Stage = Stage.ASSIGNED
    deadline: float = float("inf")
    holds: int = 0

    def move(self, by: Move) -> bool:
        """Go where the move leads. Returns whether it leads anywhere."""
        to = TRANSITIONS.get((self.stage, by))
        if to is None:
            return False
        self.stage = to
        return True


class RevokeLedger:
    """The partitions that a member owns, and which of them it is giving back."""

    __slots__ = ("_entries", "_numbers", "_pending", "_serial")

    def __init__(self) -> None:
        # Invariant: a key leaves through complete(), expire() or lose() and is then
        # reported by exactly one of them.
        self._entries: dict[TopicPartition, _Entry] = {}
        self._serial = 0
        # Answers worth keeping, None when something changed: both are asked for by
        # the reader's side all the time.
        self._numbers: dict[TopicPartition, int] | None = None
        self._pending: frozenset[TopicPartition] | None = None

    # ---- what can be read ----------------------------------------------------------

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Everything assigned, partitions on their way out included."""
        return frozenset(self._entries)

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
        """What the user's next step lets go, as far as the user is concerned.

        What is delayed is not among them until the next step, nor what is going.
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
        """How far the partition is on its way out, None if it is not assigned."""
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
        """Until when an assigned partition may stay; infinite if it is not pending."""
        return self._entries[partition].deadline

    def next_deadline(self) -> float | None:
        """When ``expire`` has something to say, None if nothing is pending."""
        return min((self._entries[tp].deadline for tp in self.pending), default=None)

    # ---- the group -----------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Own these; those that were not owned before are returned."""
        added = frozenset(tp for tp in partitions if tp not in self._entries)
        for tp in sorted(added):
            self._serial += 1
            self._entries[tp] = _Entry(self._serial)
        self._changed()
        return added

    def request(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> frozenset[TopicPartition]:
        """Ask for these back; those that were not asked for before are returned.

        A deadline in force is never extended, only brought forward.
        """
        asked = set[TopicPartition]()
        for tp in partitions:
            if (entry := self._entries.get(tp)) is None:
                continue
            entry.deadline = min(entry.deadline, deadline)
            if entry.move(Move.REQUEST):
                asked.add(tp)
        self._changed()
        return frozenset(asked)

    def expire(self, now: float) -> frozenset[TopicPartition]:
        """What was requested and is past its deadline, held or not: it is lost."""
        return self.lose(
            [tp for tp in self.pending if self._entries[tp].deadline <= now]
        )

    def lose(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> frozenset[TopicPartition]:
        """Own these no more (None: everything), whatever their stage."""
        chosen = list(self._entries) if partitions is None else partitions
        return self._end(chosen, Move.LOSE)

    # ---- the user ------------------------------------------------------------------

    def tell(self) -> None:
        """The user has been told of everything requested so far."""
        self._move_pending(Move.TELL)

    def delay(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Let the next step pass without giving these up.

        Returns:
            Those for which it is too late: not assigned any more, or going already.
            One that nobody asked for is left as it is, and is not among them.
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

        A hold may be taken before anything is requested.

        Returns:
            Those that are held from now on; the others have ended or are going.
        """
        held = list[Claim]()
        for claim in claims:
            entry = self._current(claim)
            if entry is not None and entry.stage is not Stage.COMPLETING:
                entry.holds += 1
                held.append(claim)
        return tuple(held)

    def unhold(self, claims: Iterable[Claim]) -> None:
        """End one hold of each of these; assignments that have ended are left out."""
        for claim in claims:
            entry = self._current(claim)
            if entry is not None:
                entry.holds -= 1

    def step(self) -> None:
        """The user took a step: what it was told of may go, unless delayed or held."""
        self._move_pending(Move.STEP)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """The user needs no step for these; only requested ones are concerned."""
        for tp in partitions:
            if (entry := self._entries.get(tp)) is not None:
                entry.move(Move.RELEASE)

    def part(self) -> None:
        """The user leaves: everything requested so far may go, unless it is held."""
        self._move_pending(Move.PART)

    # ---- giving up -----------------------------------------------------------------

    def begin(self) -> tuple[tuple[Claim, ...], float]:
        """Take what is ready and not held, with the earliest of its deadlines."""
        claims, deadline = list[Claim](), float("inf")
        for tp in sorted(self.pending):
            entry = self._entries[tp]
            if not entry.holds and entry.move(Move.BEGIN):
                deadline = min(deadline, entry.deadline)
                claims.append(Claim(tp, entry.number))
        return tuple(claims), deadline

    def complete(self, claims: Iterable[Claim]) -> frozenset[TopicPartition]:
        """These are given back; those lost in the meantime are not in the answer."""
        return self._end(
            [claim.partition for claim in claims if self._current(claim)],
            Move.COMPLETE,
        )

    def _current(self, claim: Claim) -> _Entry | None:
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
        self._numbers = self._pending = None
