"""Records between the I/O thread, which reads them, and the user's, who takes them.

Records cross in chunks. A chunk that is iterated over stays in the `Handoff`, where the
user takes one record after the other without asking the I/O thread. Polls, batches and
tables cross as a whole; a `Transfer` stands for one that is on its way.

The ledger belongs to the I/O thread, so it learns late which records the user has
taken: before it is read (`Handoff.sync`), or when the user asks for more
(`Handoff.settle`). No lock is needed, because each attribute is written in one thread
only while the other reads it: the user's thread moves `_at`, `_number` and
`Transfer.received` forward; the I/O thread writes all else, and replaces the chunk
only while the user's thread waits for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from kafkaio._consumer.reading.progress import HandedOut
from kafkaio._machines.offsets import OffsetLedger
from kafkaio.types import Record, TopicPartition


class ReaderPort(Protocol):
    """The reader, for a handoff."""

    @property
    def ledger(self) -> OffsetLedger:
        """The offsets handed out and finished."""
        ...

    @property
    def positions(self) -> Collection[TopicPartition]:
        """The partitions that are assigned."""
        ...

    def sync(self) -> None:
        """Bring the ledger up to date with the records handed out."""

    def take_back(self, *partitions: TopicPartition) -> None:
        """Hand out again the unfinished records of these partitions."""


class Transfer:
    """A poll, batch or table on its way from the I/O thread to the user.

    Attributes:
        partitions: the partitions of its records.
        received: `HandedOut.number` at the moment the user got it; None before.
    """

    __slots__ = ("partitions", "received")

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        self.partitions: Collection[TopicPartition] = partitions
        self.received: int | None = None


class Handoff:
    """The records that were read in the I/O thread and are taken in the user's.

    `take`, `mark` and `receive` are for the user's thread. Everything else runs in the
    I/O thread: `fill` and `settle` while the user's thread waits for that, the other
    methods at any time.

    Args:
        reader: see `ReaderPort`.
        is_interrupted: whether something must be reported to the user before the next
            record; called in the user's thread.
    """

    __slots__ = (
        "_at",
        "_before",
        "_is_interrupted",
        "_number",
        "_reader",
        "_records",
        "_synced",
        "_transfers",
    )

    def __init__(self, reader: ReaderPort, is_interrupted: Callable[[], bool]) -> None:
        self._reader = reader
        self._is_interrupted = is_interrupted
        self._records: list[Record] = []
        # How many of them were taken, and how many of these the ledger knows.
        self._at = self._synced = 0
        # Number of records that were taken of earlier chunks.
        self._before = 0
        # The transfer on its way to the user, or the last one, by partition.
        self._transfers: dict[TopicPartition, Transfer] = {}
        # Number of marks that were made.
        self._number = 0

    @property
    def progress(self) -> int:
        """A number that grows when the user takes a record, and only then."""
        return self._before + self._at

    def take(self) -> Record | None:
        """Take the next record; None if the core must be asked first."""
        at = self._at
        if at == len(self._records) or self._is_interrupted():
            return None
        self._at = at + 1
        return self._records[at]

    def mark(self) -> HandedOut:
        """Return how much the user has been handed by now."""
        self._number += 1
        return HandedOut(self.progress, self._number)

    def receive(self, transfer: Transfer) -> None:
        """Note that the user got a poll, batch or table."""
        transfer.received = self._number

    def send(self, partitions: Collection[TopicPartition]) -> Transfer:
        """Note that records of these partitions are on their way to the user."""
        transfer = Transfer(partitions)
        self._transfers.update(dict.fromkeys(partitions, transfer))
        return transfer

    def turn_back(self, transfer: Transfer) -> None:
        """Note that the user does not get it, and its records are read again."""
        for tp in transfer.partitions:
            if self._transfers.get(tp) is transfer:
                del self._transfers[tp]

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Return the offset of a partition's first record that was not taken."""
        left = self._records[self._at :]
        return next((r.offset for r in left if r.topic_partition == tp), None)

    def fill(self, records: list[Record]) -> None:
        """Hand out another chunk; the one before is finished or was taken back."""
        # In this order, `progress` never counts a record twice in the other thread.
        at, self._at = self._at, 0
        self._before += at
        self._synced = 0
        self._records = records

    def sync(self) -> None:
        """Note in the ledger that all records but the one taken last are finished."""
        self._finish(max(0, self._at - 1))

    def settle(self) -> None:
        """Finish the records taken, and return the others to the reader.

        The user asks for more, or for something else. Records that were returned are
        handed out again if their partition is still assigned.
        """
        reader = self._reader
        reader.sync()  # the ledger must know what was handed out
        self._finish(self._at)
        left = {record.topic_partition for record in self._records[self._at :]}
        self.fill([])
        for tp in left:
            if tp in reader.positions:
                reader.take_back(tp)

    def acknowledge(
        self, mark: HandedOut, partitions: Collection[TopicPartition]
    ) -> None:
        """Finish the records of these partitions that the user had at a mark.

        Records that had come here by then, and were not taken, are not finished.
        """
        ledger = self._reader.ledger
        count = min(self._at, max(0, mark.taken - self._before))
        taken = {r.topic_partition: r for r in self._records[:count]}
        left = {r.topic_partition for r in self._records[count:]}
        for tp in partitions:
            transfer = self._transfers.get(tp)
            if tp in left:
                if (last := taken.get(tp)) is not None:
                    ledger.finished_to(tp, last.offset + 1, last.leader_epoch)
            elif transfer is None or (
                transfer.received is not None and transfer.received < mark.number
            ):
                ledger.finish_of(tp)

    def _finish(self, count: int) -> None:
        ledger = self._reader.ledger
        last = {r.topic_partition: r for r in self._records[self._synced : count]}
        for tp, record in last.items():
            if tp in ledger:
                ledger.finished_to(tp, record.offset + 1, record.leader_epoch)
        self._synced = max(self._synced, count)
