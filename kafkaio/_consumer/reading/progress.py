"""Keeps account of the records that were handed out, and of those that are finished.

While records are handed out one by one, only two values change: the cursor of the chunk
(records handed out) and the mark of the handout (records finished). The machines,
`Positions` and `OffsetLedger`, are brought up to date by `ReadProgress.sync` before
somebody reads them, and not with every record.

Invariants:

- `ReadProgress.chunk` is the buffer whose chunk is the cursor of the handout. Both are
  None together.
- `leave` calls `sync` first, so the machines know of every record that was handed out
  of the chunk.
- `ReadProgress.count` grows with every record that the user takes, and never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from kafkaio._consumer.reading.buffers import PartitionBuffer
from kafkaio._consumer.reading.divider import DividerPort
from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import Positions
from kafkaio._records.batch import Handout
from kafkaio.types import TopicPartition


class HandedOut(NamedTuple):
    """The records that a user in another thread had received at some moment.

    Attributes:
        taken: the number of records taken one by one.
        number: larger than the numbers of all batches, tables and polls received.
    """

    taken: int
    number: int


class HandoffPort(Protocol):
    """Hands the records that are taken here on to a user in another thread."""

    @property
    def progress(self) -> int:
        """A number that grows when the user takes a record, and only then."""
        ...

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Return the offset of a partition's first record that was not taken."""
        ...

    def sync(self) -> None:
        """Note the records that the user has finished in the ledger."""

    def acknowledge(
        self, mark: HandedOut, partitions: Collection[TopicPartition]
    ) -> None:
        """Finish the records of partitions that the user had at that moment."""


class ReadProgress:
    """Keeps the machines up to date with the records handed out.

    Args:
        positions: where each partition is read.
        ledger: the records handed out, finished and committed.
        handout: the source of records that are iterated over one by one.

    Attributes:
        chunk: the buffer that the handout takes records from.
        divider: divides the records among several tasks; None while one task reads.
        handoff: hands the records on to another thread; None if the user is here.
        on_begin: called with a partition before records of a chunk of it are taken;
            None without a transaction.
        on_handed: called with a partition and a number of records taken from a chunk
            of it; None without an observer.
    """

    __slots__ = (
        "_begun_at",
        "_handout",
        "_ledger",
        "_positions",
        "_synced",
        "_taken",
        "chunk",
        "divider",
        "handoff",
        "on_begin",
        "on_handed",
    )

    def __init__(
        self, positions: Positions, ledger: OffsetLedger, handout: Handout
    ) -> None:
        self._positions = positions
        self._ledger = ledger
        self._handout = handout
        self.chunk: PartitionBuffer | None = None
        self.divider: DividerPort | None = None
        self.handoff: HandoffPort | None = None
        self.on_begin: Callable[[TopicPartition], None] | None = None
        self.on_handed: Callable[[TopicPartition, int], None] | None = None
        # The number of records taken from the chunk before its turn began; a chunk that
        # was left may have several turns.
        self._begun_at = 0
        # The offsets that the machines have: handed out, finished. Most calls of `sync`
        # find no change and end with one comparison.
        self._synced = (-1, -1)
        # The number of records taken from earlier chunks.
        self._taken = 0

    @property
    def count(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        taken = self._taken + (0 if self.chunk is None else self.chunk.handed)
        return taken if self.handoff is None else taken + self.handoff.progress

    def begin(self, buffer: PartitionBuffer) -> None:
        """Let the handout take records of a buffer's chunk."""
        # First: a transaction holds the partition before a record of it is taken, so
        # that it cannot be revoked in between.
        if self.on_begin is not None:
            self.on_begin(buffer.tp)
        self.chunk = buffer
        self._begun_at = buffer.handed
        self._synced = (-1, -1)
        self._handout.cursor = buffer.chunk
        self._handout.mark = -1

    def leave(self) -> None:
        """Let the handout take no more of the chunk, which stays in its buffer."""
        chunk = self.chunk
        if chunk is not None:
            self.sync()
            self._taken += chunk.handed
            self.chunk = self._handout.cursor = None
            if self.on_handed is not None and chunk.handed > self._begun_at:
                self.on_handed(chunk.tp, chunk.handed - self._begun_at)

    def leave_partition(self, tp: TopicPartition) -> None:
        """Do as `leave` does if the chunk is of this partition."""
        if self.chunk is not None and self.chunk.tp == tp:
            self.leave()

    def sync(self) -> None:
        """Note the records handed out and finished in the machines."""
        # Both may finish records of any partition, with or without a chunk.
        if self.divider is not None:
            self.divider.sync()
        if self.handoff is not None:
            self.handoff.sync()
        chunk, cursor = self.chunk, self._handout.cursor
        if chunk is None or cursor is None or cursor.remaining == chunk.count:
            return
        place = handed, mark = cursor.next_offset, self._handout.mark
        if place != self._synced:
            self._synced = place
            self._positions.advance(chunk.tp, handed, chunk.epoch)
            self._ledger.handed(chunk.tp, handed, chunk.epoch, finished=mark)

    def finish(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Finish everything that was handed out, of these or of all partitions."""
        chunk, cursor = self.chunk, self._handout.cursor
        if chunk is not None and cursor is not None:
            if partitions is None or chunk.tp in partitions:
                self._handout.mark = cursor.next_offset
            self.sync()
        self._ledger.finish(partitions)

    def acknowledge(
        self,
        partitions: Collection[TopicPartition] | None = None,
        mark: HandedOut | None = None,
    ) -> None:
        """Finish the records handed out of these or of all partitions.

        Records that handlers of `Consumer.run` work on are left out, because each
        handler finishes its own.

        Args:
            partitions: open ones; None for all.
            mark: the moment of the user's call, if the user is in another thread.
        """
        self.sync()
        # With `Consumer.run` records finish in any order: the last one handed out does
        # not imply the others.
        if self.divider is not None and not self.divider.has_order:
            return
        ledger = self._ledger
        chosen = [
            tp for tp in ledger.unfinished if partitions is None or tp in partitions
        ]
        if self.handoff is not None and mark is not None:
            self.handoff.acknowledge(mark, chosen)
            return
        for tp in chosen:
            ledger.finish_of(tp)

    def read_now(self) -> Collection[TopicPartition]:
        """Return the partitions that the last step may have handed out records of."""
        unfinished = self._ledger.unfinished
        return [tp for tp in unfinished if not self._positions[tp].is_revoking]

    def position(self, tp: TopicPartition) -> int | None:
        """Return the offset of the next record that the user gets; -1 if unknown.

        None if the partition is not assigned.
        """
        self.sync()
        entry = self._positions.get(tp)
        if entry is None:
            return None
        # Records on their way to the user's thread are behind this thread's position.
        untaken = None if self.handoff is None else self.handoff.next_offset(tp)
        return entry.position if untaken is None or entry.position < 0 else untaken
