"""Keeps account of the records that were handed out, and of those that are finished.

While records are handed out one by one, only two values change: the cursor of the chunk
(records handed out) and the mark of the handout (records finished). The machines,
`Positions` and `OffsetLedger`, are brought up to date by `ReadProgress.sync` before
somebody reads them, and not with every record.

A handout with the chunk that it takes records of is a *turn*. The reader has one, for
iteration over all partitions; each lane that is iterated over has one for its
partition.

Invariants:

- The buffer of a turn is the one whose chunk is the cursor of its handout. Both are
  None together.
- A partition's chunk is the cursor of at most one handout.
- A turn is brought up to date before it ends, so the machines know of every record that
  was handed out of the chunk.
- `ReadProgress.count` grows whenever the user takes records, at the latest with the
  first one that is taken a time slice after another, and never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from kafkaio._consumer.reading.buffers import PartitionBuffer
from kafkaio._machines.offsets import OffsetLedger
from kafkaio._machines.positions import Positions
from kafkaio._named_tuple import NamedTuple
from kafkaio._records.batch import Handout
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._consumer.reading.divider import DividerPort
    from kafkaio._records.raw import RawBatch


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


class Turn:
    """A handout, and the buffer whose chunk it takes records of.

    Args:
        handout: the source of records that are iterated over one by one.

    Attributes:
        handout: see above.
        buffer: the buffer; None without a chunk.
        begun_at: the number of records taken from the chunk before the turn began; a
            chunk that was left may have several turns.
        handed: the offset that the machines have, before which all is handed out. Most
            calls of `ReadProgress.sync` find that it and ``mark`` have not changed.
        mark: the offset that they have, before which all is finished.
    """

    __slots__ = ("begun_at", "buffer", "handed", "handout", "mark")

    def __init__(self, handout: Handout) -> None:
        self.handout: Handout = handout
        self.buffer: PartitionBuffer | None = None
        self.begun_at: int = 0
        self.handed: int = -1
        self.mark: int = -1

    def finish(self) -> None:
        """Finish the records that were handed out in this turn."""
        if (cursor := self.handout.cursor) is not None:
            self.handout.mark = cursor.next_offset


class ReadProgress:
    """Keeps the machines up to date with the records handed out.

    Args:
        positions: where each partition is read.
        ledger: the records handed out, finished and committed.
        handout: the source of records that are iterated over one by one.

    Attributes:
        turn: the turn of the reader's handout.
        divider: divides the records among several tasks; None while one task reads.
        handoff: hands the records on to another thread; None if the user is here.
        on_begin: called with a partition before records of a chunk of it are taken;
            None without a transaction.
        on_handed: called with a partition and a number of records taken from a chunk
            of it; None without an observer.
    """

    __slots__ = (
        "_lanes",
        "_ledger",
        "_positions",
        "_taken",
        "divider",
        "handoff",
        "on_begin",
        "on_handed",
        "turn",
    )

    def __init__(
        self, positions: Positions, ledger: OffsetLedger, handout: Handout
    ) -> None:
        self._positions = positions
        self._ledger = ledger
        self.turn: Turn = Turn(handout)
        # The turns of lanes, by partition.
        self._lanes: dict[TopicPartition, Turn] = {}
        self.divider: DividerPort | None = None
        self.handoff: HandoffPort | None = None
        self.on_begin: Callable[[TopicPartition], None] | None = None
        self.on_handed: Callable[[TopicPartition, int], None] | None = None
        # The number of records taken from earlier chunks, and of steps of lanes.
        self._taken = 0

    @property
    def count(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        chunk = self.turn.buffer
        taken = self._taken + (0 if chunk is None else chunk.handed)
        return taken if self.handoff is None else taken + self.handoff.progress

    def begin(self, buffer: PartitionBuffer, turn: Turn) -> None:
        """Let the handout of a turn, the reader's or a lane's, take of a chunk."""
        # First: a transaction holds the partition before a record of it is taken, so
        # that it cannot be revoked in between.
        if self.on_begin is not None:
            self.on_begin(buffer.tp)
        if turn is not self.turn:
            self.leave_partition(buffer.tp)
            self._lanes[buffer.tp] = turn
        elif self._lanes:
            self._leave_lane(buffer.tp)
        turn.buffer = buffer
        turn.begun_at = buffer.handed
        turn.handed = turn.mark = -1
        turn.handout.cursor = buffer.chunk
        turn.handout.mark = -1

    def step_taken(self) -> None:
        """Note that the user asks a lane for records."""
        self._taken += 1

    def took_whole(self, tp: TopicPartition, batches: Sequence[RawBatch]) -> None:
        """Note that the user takes record batches of a partition as a whole."""
        self._taken += 1
        if self.on_handed is not None:
            self.on_handed(tp, sum(batch.count for batch in batches))

    def leave(self) -> None:
        """Let the reader's handout take no more of the chunk, which stays there."""
        if (chunk := self.turn.buffer) is not None:
            self.sync(chunk.tp)
            self._end(self.turn)

    def leave_all(self) -> None:
        """Bring everything up to date, and let no handout take more of its chunk."""
        self.sync()
        self.leave()
        for tp in list(self._lanes):
            self._leave_lane(tp)

    def leave_partition(self, tp: TopicPartition) -> None:
        """Let no handout take more of the chunk of this partition."""
        turn = self.turn
        chunk = turn.buffer
        if chunk is not None and chunk.tp == tp:
            self.sync(tp)
            self._end(turn)
        if self._lanes:
            self._leave_lane(tp)

    def _leave_lane(self, tp: TopicPartition) -> None:
        if tp in self._lanes:
            self.sync(tp)
            self._end(self._lanes.pop(tp))

    def _end(self, turn: Turn) -> None:
        chunk = turn.buffer
        turn.buffer = turn.handout.cursor = None
        if chunk is not None:
            handed = chunk.handed
            self._taken += handed
            if self.on_handed is not None and handed > turn.begun_at:
                self.on_handed(chunk.tp, handed - turn.begun_at)

    def interrupt(self) -> None:
        """Make the next step of each lane one that may wait."""
        for turn in self._lanes.values():
            turn.handout.credit = 0

    def sync(self, tp: TopicPartition | None = None) -> None:
        """Note the records handed out and finished in the machines.

        Args:
            tp: the partition that is asked for, if no other lane has to be brought up
                to date; None for all.
        """
        # Both may finish records of any partition, with or without a chunk.
        if self.divider is not None:
            self.divider.sync()
        if self.handoff is not None:
            self.handoff.sync()
        self._sync(self.turn)
        if self._lanes:
            for turn in self._lanes_of(tp):
                self._sync(turn)

    def _sync(self, turn: Turn) -> None:
        handout = turn.handout
        cursor = handout.cursor
        if cursor is None:
            return
        handed, mark = cursor.next_offset, handout.mark
        if handed == turn.handed and mark == turn.mark:
            return
        chunk = turn.buffer
        if chunk is not None and cursor.remaining != chunk.count:
            turn.handed, turn.mark = handed, mark
            self._positions.advance(chunk.tp, handed, chunk.epoch)
            self._ledger.handed(chunk.tp, handed, chunk.epoch, finished=mark)

    def _lanes_of(self, tp: TopicPartition | None) -> Collection[Turn]:
        if tp is None:
            return self._lanes.values()
        lane = self._lanes.get(tp)
        return () if lane is None else (lane,)

    def finish(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Finish everything that was handed out, of these or of all partitions."""
        if (chunk := self.turn.buffer) is not None:
            if partitions is None or chunk.tp in partitions:
                self.turn.finish()
            self.sync()
        self._ledger.finish(partitions)

    def finish_lane(self, tp: TopicPartition) -> None:
        """Finish the records that were handed out of a lane's partition."""
        if (turn := self._lanes.get(tp)) is not None:
            turn.finish()
            self.sync(tp)
        self._ledger.finish_of(tp)

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
        if partitions is None:
            self.sync()
        for tp in partitions or ():
            self.sync(tp)
        # With `Consumer.run` records finish in any order: the last one handed out does
        # not imply the others.
        if self.divider is not None and not self.divider.has_order:
            return
        if self.handoff is None or mark is None:
            self._ledger.finish_handed(partitions)
            return
        chosen = list(self._ledger.unfinished)
        if partitions is not None:
            chosen = [tp for tp in chosen if tp in partitions]
        self.handoff.acknowledge(mark, chosen)

    def read_now(self) -> Collection[TopicPartition]:
        """Return the partitions that the last step may have handed out records of."""
        unfinished = self._ledger.unfinished
        return [tp for tp in unfinished if not self._positions[tp].is_revoking]

    def position(self, tp: TopicPartition) -> int | None:
        """Return the offset of the next record that the user gets; -1 if unknown.

        None if the partition is not assigned.
        """
        self.sync(tp)
        entry = self._positions.get(tp)
        if entry is None:
            return None
        # Records on their way to the user's thread are behind this thread's position.
        untaken = None if self.handoff is None else self.handoff.next_offset(tp)
        return entry.position if untaken is None or entry.position < 0 else untaken
