"""What of each partition was handed out, finished and committed.

A record is finished once the user has asked for the next one, or has called
``commit()`` for it: until then it may be in the middle of its work. Only finished
records are ever committed. So there are three offsets per partition, each the offset
of the next record::

    committed <= finished <= handed        (but for a seek back, which sets both)

A partition is opened with the number of its assignment. What arrives late, from an
assignment that has ended, is dropped: the partition may belong to another member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkaio._dataclass import dataclass
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Commit", "OffsetLedger"]


@dataclass(frozen=True, slots=True)
class Commit:
    """Offsets to be committed, and what the ledger said when they were taken.

    Attributes:
        offsets: what to commit.
        numbers: the assignment that each open partition had.
        done: the open partitions of which all before the offset was handed out: who
            commits records that were handed out says that they are finished.
        serial: how many commits had been made with this one.
    """

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    numbers: Mapping[TopicPartition, int]
    done: Collection[TopicPartition]
    serial: int


@dataclass(slots=True)
class _Entry:
    number: int
    handed: int = -1
    handed_epoch: int = -1
    finished: int = -1
    finished_epoch: int = -1
    # Whether the partition was open before, and how far it was handed out since. A seek
    # changes neither.
    is_again: bool = False
    reach: int = -1
    # The commit after which ``finished`` moved last, -1 if that need not be committed;
    # and the last one made, of those that were taken. A commit that the user chose,
    # ahead of it or behind, stays until it moves again.
    moved: int = -1
    settled: int = 0
    # What the broker has, -1 if unknown; and the last commit that was sent, until whose
    # answer it is unknown.
    committed: int = -1
    sent: int = 0

    @property
    def is_due(self) -> bool:
        return self.moved >= self.settled

    def finish(self, offset: int, epoch: int, serial: int) -> None:
        if offset != self.finished:
            self.moved = serial
        self.finished, self.finished_epoch = offset, epoch


class OffsetLedger:
    """The offsets of every partition assigned now."""

    __slots__ = ("_closed", "_entries", "_kept", "_sent", "_serial", "_unfinished")

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, _Entry] = {}
        # Invariant: exactly the partitions whose handed and finished differ.
        self._unfinished: set[TopicPartition] = set()
        self._kept: frozenset[TopicPartition] = frozenset()
        # Every partition that was open once.
        self._closed: set[TopicPartition] = set()
        # Commits made so far, and those that are on their way, by their numbers.
        self._serial = 0
        self._sent: dict[int, Commit] = {}

    def __repr__(self) -> str:
        return (
            f"<OffsetLedger {len(self._entries)} partitions | "
            f"{len(self._unfinished)} unfinished>"
        )

    def open(self, tp: TopicPartition, number: int) -> None:
        """Begin an assignment; what is known of an older one is forgotten."""
        self.close(tp)
        self._entries[tp] = _Entry(number, is_again=tp in self._closed)

    def close(self, tp: TopicPartition) -> None:
        """End an assignment. A partition that is not open stays so."""
        if self._entries.pop(tp, None) is not None:
            self._closed.add(tp)
        self._unfinished.discard(tp)
        self._kept -= {tp}

    def positioned(
        self, tp: TopicPartition, offset: int, epoch: int = -1, *, committed: bool
    ) -> None:
        """Set where reading begins: all before ``offset`` counts as finished.

        Args:
            tp: an open partition.
            offset: offset of the first record to read.
            epoch: leader epoch of the record before it, -1 if unknown.
            committed: whether the offset came from a commit, so that it need not be
                committed again.
        """
        entry = self._entries[tp]
        entry.handed, entry.handed_epoch = offset, epoch
        entry.finish(offset, epoch, self._serial)
        if committed:
            entry.moved = -1
            entry.committed = offset
        self._unfinished.discard(tp)

    def unpositioned(self, tp: TopicPartition) -> None:
        """Forget an open partition's position, which is being looked up anew."""
        old = self._entries[tp]
        self._entries[tp] = _Entry(old.number, is_again=old.is_again, reach=old.reach)
        self._unfinished.discard(tp)

    def handed(
        self, tp: TopicPartition, offset: int, epoch: int = -1, *, finished: int = -1
    ) -> None:
        """Records before ``offset`` were handed to the user, who works on them.

        Those before ``finished`` are finished.
        """
        entry = self._entries[tp]
        if offset > entry.handed:
            entry.handed, entry.handed_epoch = offset, epoch
            if offset > entry.reach:
                entry.reach = offset
            if finished != offset:
                self._unfinished.add(tp)
        if entry.finished < finished <= entry.handed:
            entry.finish(finished, epoch, self._serial)
            if finished == entry.handed:
                self._unfinished.discard(tp)

    def skipped(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """There was nothing for the user before ``offset``: markers, aborted data."""
        entry = self._entries[tp]
        if offset <= entry.handed:
            return
        entry.handed, entry.handed_epoch = offset, epoch
        if tp not in self._unfinished:
            entry.finish(offset, epoch, self._serial)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Let `finish` leave these alone, besides those kept; none ends all of that."""
        self._kept = self._kept.union(partitions) if partitions else frozenset()

    def finish(self) -> None:
        """The user asked for more: whatever was handed out before is finished.

        Except for the partitions that are kept.
        """
        if not self._unfinished:
            return
        for tp in self._unfinished - self._kept:
            entry = self._entries[tp]
            entry.finish(entry.handed, entry.handed_epoch, self._serial)
        self._unfinished &= self._kept

    def finished_to(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Records before ``offset`` are finished, those handed out after it are not."""
        self.handed(tp, -1, epoch, finished=offset)

    def finish_of(self, tp: TopicPartition) -> None:
        """Whatever was handed out of one open partition is finished."""
        entry = self._entries[tp]
        if tp in self._unfinished:
            entry.finish(entry.handed, entry.handed_epoch, self._serial)
            self._unfinished.discard(tp)

    def unfinished_from(self, tp: TopicPartition) -> OffsetAndMetadata | None:
        """Up to where a partition is finished: None where all handed out is."""
        if tp not in self._unfinished:
            return None
        entry = self._entries[tp]
        return OffsetAndMetadata(entry.finished, leader_epoch=entry.finished_epoch)

    def is_due(self, tp: TopicPartition) -> bool:
        """Whether something finished of an open partition is not committed."""
        return self._entries[tp].is_due

    @property
    def unfinished(self) -> Collection[TopicPartition]:
        """The partitions with records that the user may still work on."""
        return self._unfinished

    def has_unfinished(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the user still works on records of any of the partitions."""
        return any(tp in self._unfinished for tp in partitions)

    def due(self, partitions: Collection[TopicPartition] | None = None) -> Commit:
        """Take what was finished since the last commit, of some or all partitions.

        Where nothing was since a commit that is still on its way, that one stands.
        """
        chosen = self._on_their_way()
        due = dict[TopicPartition, OffsetAndMetadata]()
        for tp, entry in self._entries.items():
            is_wanted = partitions is None or tp in partitions
            if not (is_wanted and entry.is_due and entry.finished >= 0):
                continue
            due[tp] = chosen.get(tp) or OffsetAndMetadata(
                entry.finished, leader_epoch=entry.finished_epoch
            )
        return self.commit_of(due)

    def finished(self, partitions: Collection[TopicPartition] | None = None) -> Commit:
        """Take all that is finished, of some or all partitions.

        For a commit that the user asks for: unlike `due`, it goes over offsets that
        the user chose before. What the broker is known to have may be left out.
        """
        return self.commit_of(
            {
                tp: OffsetAndMetadata(entry.finished, leader_epoch=entry.finished_epoch)
                for tp, entry in self._entries.items()
                if (partitions is None or tp in partitions)
                and entry.finished >= 0
                and (entry.is_due or entry.finished != entry.committed)
            }
        )

    def _on_their_way(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            tp: commit.offsets[tp]
            for serial, commit in self._sent.items()
            for tp, number in commit.numbers.items()
            if self.number(tp) == number and self._entries[tp].moved < serial
        }

    def commit_of(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Commit:
        """Make a commit of offsets, under the assignments of now."""
        self._serial += 1
        numbers = {tp: self._entries[tp].number for tp in offsets if tp in self}
        done = {tp for tp in numbers if offsets[tp].offset <= self._entries[tp].handed}
        return Commit(offsets, numbers, done, self._serial)

    def sent(self, commit: Commit) -> None:
        """A commit is on its way to the broker; `answered` ends that."""
        self._sent[commit.serial] = commit
        for tp, number in commit.numbers.items():
            if self.number(tp) == number:
                entry = self._entries[tp]
                entry.sent, entry.committed = commit.serial, -1

    def answered(self, commit: Commit) -> None:
        """A commit is not on its way any more: taken, as `committed` tells, or not."""
        self._sent.pop(commit.serial, None)

    def committed(self, commit: Commit) -> None:
        """The broker has taken a commit; assignments that have ended are left out.

        It took them in the order in which they were made, whatever the order in which
        that is told.
        """
        for tp, number in commit.numbers.items():
            entry = self._entries.get(tp)
            if entry is None or entry.number != number:
                continue
            offset, moved = commit.offsets[tp], entry.moved
            if commit.serial == entry.sent:
                entry.committed = offset.offset
            if tp in commit.done:
                self.finished_to(tp, offset.offset, offset.leader_epoch)
                entry.moved = moved
            if commit.serial > entry.settled:
                entry.settled = commit.serial
                # Unless another was made in between, which may have gone behind it.
                if offset.offset == entry.finished and moved <= commit.serial:
                    entry.moved = -1

    def is_of_old(self, tp: TopicPartition, offset: int) -> bool:
        """Whether the record there was handed out under an old assignment alone.

        False where the partition is not open, or is for the first time.
        """
        entry = self._entries.get(tp)
        return entry is not None and entry.is_again and offset >= entry.reach

    def has_handed(self, tp: TopicPartition) -> bool:
        """Whether a record was handed out under the present assignment."""
        return (entry := self._entries.get(tp)) is not None and entry.reach >= 0

    def number(self, tp: TopicPartition) -> int | None:
        """The number of a partition's assignment: None where it is not open."""
        entry = self._entries.get(tp)
        return None if entry is None else entry.number

    def __contains__(self, tp: object) -> bool:
        return tp in self._entries
