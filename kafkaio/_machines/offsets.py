"""The records of each partition that were handed out, finished and committed.

A record is finished once the application has asked for the next one, or has called
``commit()`` for it: until then the application may still be working on it. Only
finished records are committed. So each partition has three offsets, each of them the
offset of the next record::

    committed <= finished <= handed      (except after a seek back)

A seek back sets ``handed`` and ``finished`` below ``committed``.

A partition is opened with the number of its assignment. Late results of an assignment
that has ended are ignored: the partition may belong to another member by now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkaio._dataclass import dataclass
from kafkaio.types import OffsetAndMetadata, TopicPartition


@dataclass(slots=True)
class Commit:
    """Offsets to commit, and the state of the ledger when the commit was made.

    Attributes:
        offsets: the offsets to commit.
        numbers: the number of each open partition's assignment.
        done: the open partitions of which everything before the offset was handed out:
            a commit of records that were handed out also declares them finished.
        serial: the number of this commit, counted from 1.
    """

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    numbers: Mapping[TopicPartition, int]
    done: Collection[TopicPartition]
    serial: int

    def of(self, partitions: Collection[TopicPartition]) -> Commit:
        """Return the part of the commit that belongs to these partitions."""
        return Commit(
            {tp: at for tp, at in self.offsets.items() if tp in partitions},
            {tp: number for tp, number in self.numbers.items() if tp in partitions},
            {tp for tp in self.done if tp in partitions},
            self.serial,
        )


@dataclass(slots=True)
class _PartitionOffsets:
    number: int
    handed: int = -1
    handed_epoch: int = -1
    finished: int = -1
    finished_epoch: int = -1
    # Whether the partition was open under an older assignment, and the highest offset
    # handed out under this one. Seeks change neither, so they still distinguish records
    # of this assignment from those of an older one.
    was_open_before: bool = False
    handed_most: int = -1
    # The serial of the last commit made before ``finished`` moved last, -1 if that move
    # need not be committed; and the highest serial of the commits that succeeded. So
    # auto-commit leaves an offset alone that the application committed itself, ahead of
    # ``finished`` or behind it, until ``finished`` moves again.
    moved: int = -1
    settled: int = 0
    # The committed offset as the broker has it, -1 if unknown; and the serial of the
    # last commit that was sent, until whose answer it is unknown.
    committed: int = -1
    sent: int = 0
    # The serial of the last commit made before the position was set independently of
    # the committed offset (a seek, a reset); -1 if it was not, or after a later commit.
    apart: int = -1
    # The last part of the log that was skipped: markers and aborted records, of which
    # nothing can be handed out.
    gap: int = -1
    gap_end: int = -1
    gap_epoch: int = -1

    @property
    def is_due(self) -> bool:
        return self.moved >= self.settled

    def finish(self, offset: int, epoch: int, serial: int) -> None:
        if offset != self.finished:
            self.moved = serial
        self.finished, self.finished_epoch = offset, epoch


class OffsetLedger:
    """The offsets of all partitions that are assigned now."""

    __slots__ = (
        "_changed",
        "_closed",
        "_entries",
        "_kept",
        "_sent",
        "_serial",
        "_unfinished",
    )

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, _PartitionOffsets] = {}
        # Invariant: exactly the partitions whose handed and finished differ.
        self._unfinished: set[TopicPartition] = set()
        # Invariant: all open partitions whose finished offset may be another one than
        # the broker is known to have, in the order of their changes. A commit after
        # each record looks at these alone, and not at all that are open.
        self._changed: dict[TopicPartition, None] = {}
        # Partitions whose records `finish` leaves unfinished; see `keep`.
        self._kept: frozenset[TopicPartition] = frozenset()
        # All partitions that were open once.
        self._closed: set[TopicPartition] = set()
        # The number of commits so far, and those in flight by their serials.
        self._serial = 0
        self._sent: dict[int, Commit] = {}

    def __repr__(self) -> str:
        return (
            f"<OffsetLedger {len(self._entries)} partitions | "
            f"{len(self._unfinished)} unfinished>"
        )

    def open(self, tp: TopicPartition, number: int) -> None:
        """Begin an assignment, and forget an older one of the partition."""
        self.close(tp)
        self._entries[tp] = _PartitionOffsets(
            number, was_open_before=tp in self._closed
        )

    def close(self, tp: TopicPartition) -> None:
        """End an assignment; nothing happens if the partition is not open."""
        if self._entries.pop(tp, None) is not None:
            self._closed.add(tp)
        self._changed.pop(tp, None)
        self._unfinished.discard(tp)
        self._kept -= {tp}

    def positioned(
        self, tp: TopicPartition, offset: int, epoch: int = -1, *, committed: bool
    ) -> None:
        """Set where reading begins: everything before ``offset`` counts as finished.

        Args:
            tp: an open partition.
            offset: offset of the first record to read.
            epoch: leader epoch of the record before it, -1 if unknown.
            committed: whether the offset is a committed one, which need not be
                committed again.
        """
        entry = self._entries[tp]
        # A topic that was created again has another log.
        entry.gap = entry.gap_end = -1
        entry.handed, entry.handed_epoch = offset, epoch
        entry.finish(offset, epoch, self._serial)
        self._changed[tp] = None
        if committed:
            entry.moved = -1
            entry.committed = offset
        else:
            entry.apart = self._serial
        self._unfinished.discard(tp)

    def unpositioned(self, tp: TopicPartition) -> None:
        """Forget an open partition's position: it is being looked up again."""
        old = self._entries[tp]
        self._entries[tp] = _PartitionOffsets(
            old.number,
            was_open_before=old.was_open_before,
            handed_most=old.handed_most,
            apart=old.apart,
        )
        self._unfinished.discard(tp)

    def is_apart(self, tp: TopicPartition) -> bool:
        """Whether reading began elsewhere than at the committed offset.

        True after a seek, or after a reset because the position was outside the log,
        until a later commit succeeds.
        """
        return (entry := self._entries.get(tp)) is not None and entry.apart >= 0

    def perhaps_committed(self, tp: TopicPartition) -> None:
        """Note that a commit of unknown outcome may have set the committed offset."""
        self._entries[tp].apart = -1

    def handed(
        self, tp: TopicPartition, offset: int, epoch: int = -1, *, finished: int = -1
    ) -> None:
        """Note that the records before ``offset`` were handed out.

        Those before ``finished`` are finished.
        """
        entry = self._entries[tp]
        if offset > entry.handed:
            entry.handed, entry.handed_epoch = offset, epoch
            if offset > entry.handed_most:
                entry.handed_most = offset
            if finished != offset:
                self._unfinished.add(tp)
        if entry.finished < finished <= entry.handed:
            entry.finish(finished, epoch, self._serial)
            self._changed[tp] = None
            if finished == entry.handed:
                self._unfinished.discard(tp)

    def skipped(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Note that up to ``offset`` there are only markers and aborted records."""
        entry = self._entries[tp]
        if offset <= entry.handed:
            return
        # A gap that follows the last one directly extends it.
        if entry.gap_end != entry.handed:
            entry.gap = entry.handed
        entry.gap_end, entry.gap_epoch = offset, epoch
        entry.handed, entry.handed_epoch = offset, epoch
        if tp not in self._unfinished:
            entry.finish(offset, epoch, self._serial)
            self._changed[tp] = None

    def after(self, tp: TopicPartition, at: OffsetAndMetadata) -> OffsetAndMetadata:
        """Return where reading goes on behind an offset (KIP-1094).

        This is a higher offset if nothing in between can be handed out. Otherwise a
        group that commits record by record would keep a lag of one wherever the log
        ends with the marker of a transaction.
        """
        entry = self._entries.get(tp)
        if entry is None or not entry.gap <= at.offset < entry.gap_end:
            return at
        return OffsetAndMetadata(entry.gap_end, at.metadata, entry.gap_epoch)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Exclude these from `finish` as well; without partitions, exclude none."""
        self._kept = self._kept.union(partitions) if partitions else frozenset()

    def finish(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Finish records handed out: the application has asked for more.

        Partitions excluded by `keep` stay as they are.

        Args:
            partitions: those that it has asked for; None for all.
        """
        if not self._unfinished:
            return
        done = self._unfinished - self._kept
        if partitions is not None:
            done.intersection_update(partitions)
        for tp in done:
            self._finish(tp)

    def finished_to(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Note that the records before ``offset`` are finished."""
        self.handed(tp, -1, epoch, finished=offset)

    def finish_of(self, tp: TopicPartition) -> None:
        """Finish all records handed out of an open partition, excluded or not."""
        if tp in self._unfinished:
            self._finish(tp)

    def finish_handed(self, partitions: Collection[TopicPartition] | None) -> None:
        """Finish all records handed out of these or of all partitions."""
        for tp in list(self._unfinished):
            if partitions is None or tp in partitions:
                self._finish(tp)

    def _finish(self, tp: TopicPartition) -> None:
        # What is unfinished has another offset than what is finished.
        entry = self._entries[tp]
        entry.finished, entry.finished_epoch = entry.handed, entry.handed_epoch
        entry.moved = self._serial
        self._changed[tp] = None
        self._unfinished.discard(tp)

    def unfinished_from(self, tp: TopicPartition) -> OffsetAndMetadata | None:
        """Where a partition's unfinished records begin; None if there are none."""
        if tp not in self._unfinished:
            return None
        entry = self._entries[tp]
        return OffsetAndMetadata(entry.finished, leader_epoch=entry.finished_epoch)

    def is_due(self, tp: TopicPartition) -> bool:
        """Whether finished records of an open partition are not committed yet."""
        return self._entries[tp].is_due

    @property
    def unfinished(self) -> Collection[TopicPartition]:
        """The partitions with records that may still be worked on."""
        return self._unfinished

    def has_unfinished(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether records of any of the partitions may still be worked on."""
        return any(tp in self._unfinished for tp in partitions)

    def due(self, partitions: Collection[TopicPartition] | None = None) -> Commit:
        """Make a commit of the records that were finished since the last one.

        Partitions without progress since a commit in flight get the offset of that
        commit.

        Args:
            partitions: which partitions; None for all.
        """
        # The broker applies commits in order. An offset that the application is
        # committing must not be overwritten with an older decision.
        chosen = self._in_flight()
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
        """Make a commit of all finished records, for a commit that the user requests.

        Unlike `due` it replaces offsets that the application committed itself. Offsets
        that the broker is known to have may be omitted.

        Args:
            partitions: which partitions; None for all.
        """
        # As `commit_of`: a commit after each record comes here each time. What is
        # finished has been handed out.
        chosen: dict[TopicPartition, OffsetAndMetadata] = {}
        numbers: dict[TopicPartition, int] = {}
        for tp in list(self._changed):
            entry = self._entries[tp]
            finished = entry.finished
            is_known = finished == entry.committed and entry.moved < entry.settled
            if is_known or finished < 0:
                del self._changed[tp]
            elif partitions is None or tp in partitions:
                chosen[tp] = OffsetAndMetadata(finished, "", entry.finished_epoch)
                numbers[tp] = entry.number
        self._serial += 1
        return Commit(chosen, numbers, chosen.keys(), self._serial)

    def _in_flight(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            tp: commit.offsets[tp]
            for serial, commit in self._sent.items()
            for tp, number in commit.numbers.items()
            if self.number(tp) == number and self._entries[tp].moved < serial
        }

    def commit_of(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Commit:
        """Make a commit of these offsets, under the present assignments."""
        self._serial += 1
        # Annotated: a call of `dict[...]` takes ten times as long.
        numbers: dict[TopicPartition, int] = {}
        done: set[TopicPartition] = set()
        for tp, at in offsets.items():
            if (entry := self._entries.get(tp)) is not None:
                numbers[tp] = entry.number
                if at.offset <= entry.handed:
                    done.add(tp)
        return Commit(offsets, numbers, done, self._serial)

    def sent(self, commit: Commit) -> None:
        """Note that a commit was sent; it is in flight until `answered`."""
        self._sent[commit.serial] = commit
        for tp, number in commit.numbers.items():
            entry = self._entries.get(tp)
            if entry is not None and entry.number == number:
                entry.sent, entry.committed = commit.serial, -1
                self._changed[tp] = None

    def answered(self, commit: Commit) -> None:
        """Note that a commit has ended; `committed` reports its successful part."""
        self._sent.pop(commit.serial, None)

    def in_flight(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> frozenset[int]:
        """The serials of the commits in flight: of all, or about these partitions."""
        if partitions is None:
            return frozenset(self._sent)
        return frozenset(
            serial
            for serial, commit in self._sent.items()
            if any(tp in commit.numbers for tp in partitions)
        )

    def committed(self, commit: Commit) -> None:
        """Note that a commit succeeded; assignments that have ended are ignored.

        The broker applies commits in the order in which they were made, which need not
        be the order of these calls.
        """
        for tp, number in commit.numbers.items():
            entry = self._entries.get(tp)
            if entry is None or entry.number != number:
                continue
            offset, serial, moved = (
                commit.offsets[tp].offset,
                commit.serial,
                entry.moved,
            )
            if serial > entry.apart:
                entry.apart = -1
            if serial == entry.sent:
                entry.committed = offset
            if entry.finished < offset and tp in commit.done:
                # This moves ``finished`` to what was just committed, which is not a
                # reason to commit it again.
                self.finished_to(tp, offset, commit.offsets[tp].leader_epoch)
                entry.moved = moved
            if serial > entry.settled:
                entry.settled = serial
                # Unless another commit was made in between: it may have set the offset
                # back, so that ``finished`` is to be committed again.
                if offset == entry.finished and moved <= serial:
                    entry.moved = -1

    def is_from_old_assignment(self, tp: TopicPartition, offset: int) -> bool:
        """Whether the record there was handed out only under an older assignment.

        False if the partition is not open, or is open for the first time.
        """
        entry = self._entries.get(tp)
        return (
            entry is not None and entry.was_open_before and offset >= entry.handed_most
        )

    def has_handed(self, tp: TopicPartition) -> bool:
        """Whether a record was handed out under the present assignment."""
        return (entry := self._entries.get(tp)) is not None and entry.handed_most >= 0

    def number(self, tp: TopicPartition) -> int | None:
        """The number of a partition's assignment; None if it is not open."""
        entry = self._entries.get(tp)
        return None if entry is None else entry.number

    def __contains__(self, tp: object) -> bool:
        return tp in self._entries
