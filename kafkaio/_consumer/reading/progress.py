"""What was handed out, what of it is finished, and who is notified.

While records are handed out one by one, only two things move: the cursor of the chunk
(what was handed out) and the mark of the handout (what is finished). The machines,
`Positions` and `OffsetLedger`, are brought up to date by `ReadProgress.sync` before
somebody reads them, and not with every record.

Invariants:

- `ReadProgress.chunk` is the buffer whose chunk is the cursor of the handout. Both are
  None together.
- A chunk is left (`leave`) only after a `sync`, so nothing that was handed out of it is
  unknown to the machines.
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
    """How much a user in another thread had been handed at some moment.

    Attributes:
        taken: number of records that it had taken one by one.
        number: batches, tables and polls that it had received have smaller numbers.
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
        """Bring the ledger up to date with what the user finished."""

    def acknowledge(
        self, mark: HandedOut, partitions: Collection[TopicPartition]
    ) -> None:
        """Finish what the user had been handed of these partitions at that moment."""


class ReadProgress:
    """Keeps the machines up to date with what the user is handed.

    Args:
        positions: where each partition is read.
        ledger: what is handed out, finished and committed.
        handout: what iteration takes records from, one by one.

    Attributes:
        chunk: the buffer that the handout takes records from.
        divider: divides the records among several tasks; None while one task reads.
        handoff: hands the records on to another thread; None if the user is here.
        on_begin: called with a partition before records of a chunk of it are taken;
            None without a transaction.
        on_handed: called with a partition and a number of records that were taken of
            a chunk of it; None if nobody wants to know.
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
        # How many records of the chunk had been taken when its turn began.
        self._begun_at = 0
        # The offsets of the chunk that the machines know: handed out, finished.
        self._synced = (-1, -1)
        # Number of records that were taken of earlier chunks.
        self._taken = 0

    @property
    def count(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        taken = self._taken + (0 if self.chunk is None else self.chunk.handed)
        return taken if self.handoff is None else taken + self.handoff.progress

    def begin(self, buffer: PartitionBuffer) -> None:
        """Let the handout take records of a buffer's chunk."""
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
        """Bring the machines up to date with what was handed out and finished."""
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

    def finish(self) -> None:
        """Finish everything that was handed out."""
        if (cursor := self._handout.cursor) is not None:
            self._handout.mark = cursor.next_offset
            self.sync()
        self._ledger.finish()

    def acknowledge(
        self,
        partitions: Collection[TopicPartition] | None = None,
        mark: HandedOut | None = None,
    ) -> None:
        """Finish what was handed out of these or of all partitions.

        Records that handlers of `Consumer.run` work on are left out, because each
        handler finishes its own.

        Args:
            partitions: open ones; None for all.
            mark: the moment of the user's call, if the user is in another thread.
        """
        self.sync()
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
        untaken = None if self.handoff is None else self.handoff.next_offset(tp)
        return entry.position if untaken is None or entry.position < 0 else untaken
