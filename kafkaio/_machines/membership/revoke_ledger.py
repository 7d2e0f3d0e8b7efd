"""What becomes of each assigned partition: the heart of the deferred revoke (KIP-983).

Every assignment of a partition has a number that is never used again, so that nothing
which belongs to an old assignment (a commit, a callback) can touch a later one of the
same partition. An assignment is

    HELD -> REQUESTED -> READY -> COMPLETING -> revoked

and may be lost from each of these. REQUESTED waits for the user's next step, READY for
the machine to begin, COMPLETING for the last commit and the user's callback.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from kafkaio.types import TopicPartition

__all__ = ["Claim", "RevokeLedger", "Stage"]


class Stage(Enum):
    """How far an assignment is on its way out."""

    HELD = auto()
    REQUESTED = auto()
    READY = auto()
    COMPLETING = auto()


class Claim(NamedTuple):
    """One assignment of one partition."""

    partition: TopicPartition
    number: int


@dataclass(slots=True)
class _Entry:
    number: int
    stage: Stage = Stage.HELD
    deadline: float = float("inf")


_PENDING: Final = frozenset({Stage.REQUESTED, Stage.READY, Stage.COMPLETING})


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

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Everything held, partitions on their way out included."""
        return frozenset(self._entries)

    @property
    def pending(self) -> frozenset[TopicPartition]:
        """The partitions whose revocation was requested and is not complete."""
        if self._pending is None:
            self._pending = frozenset(
                tp for tp, entry in self._entries.items() if entry.stage in _PENDING
            )
        return self._pending

    @property
    def numbers(self) -> dict[TopicPartition, int]:
        """The number of each assignment; a new dict after each change, never edited."""
        if self._numbers is None:
            self._numbers = {tp: entry.number for tp, entry in self._entries.items()}
        return self._numbers

    def stage(self, partition: TopicPartition) -> Stage | None:
        """How far the partition is on its way out, None if it is not held."""
        entry = self._entries.get(partition)
        return None if entry is None else entry.stage

    def assign(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Hold these; those that were not held before are returned."""
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
            if entry.stage is Stage.HELD:
                entry.stage = Stage.REQUESTED
                asked.add(tp)
        self._changed()
        return frozenset(asked)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """The user has finished with these; only requested ones are concerned."""
        for tp in partitions:
            entry = self._entries.get(tp)
            if entry is not None and entry.stage is Stage.REQUESTED:
                entry.stage = Stage.READY

    def step(self) -> None:
        """The user took a step: every revoke requested before may complete."""
        self.release(self.pending)

    def begin(self) -> tuple[tuple[Claim, ...], float]:
        """Take what is ready, with the earliest of its deadlines."""
        claims, deadline = list[Claim](), float("inf")
        for tp in sorted(self.pending):
            entry = self._entries[tp]
            if entry.stage is not Stage.READY:
                continue
            entry.stage = Stage.COMPLETING
            deadline = min(deadline, entry.deadline)
            claims.append(Claim(tp, entry.number))
        return tuple(claims), deadline

    def complete(self, claims: Iterable[Claim]) -> frozenset[TopicPartition]:
        """These are held no more; those lost in the meantime are not in the answer."""
        return self._drop(tp for tp, number in claims if self._is_current(tp, number))

    def expire(self, now: float) -> frozenset[TopicPartition]:
        """What was requested and is past its deadline; it is held no more."""
        return self._drop(
            [
                tp
                for tp, entry in self._entries.items()
                if entry.stage in _PENDING and entry.deadline <= now
            ]
        )

    def lose(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> frozenset[TopicPartition]:
        """Hold these no more (None: everything), whatever their stage."""
        return self._drop(list(self._entries) if partitions is None else partitions)

    def next_deadline(self) -> float | None:
        """When ``expire`` has something to say, None if nothing is pending."""
        return min((self._entries[tp].deadline for tp in self.pending), default=None)

    def _is_current(self, partition: TopicPartition, number: int) -> bool:
        entry = self._entries.get(partition)
        return entry is not None and entry.number == number

    def _drop(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        gone = frozenset(tp for tp in partitions if tp in self._entries)
        for tp in gone:
            del self._entries[tp]
        self._changed()
        return gone

    def _changed(self) -> None:
        self._numbers = self._pending = None
