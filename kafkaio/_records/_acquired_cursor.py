"""The cursor over the acquired records of a batch: the pure twin, the reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from kafkaio._records._acquired import GAP, Acquired, AnyShareRecord, share_record
from kafkaio._records._cursor import RecordCursor
from kafkaio.errors import CorruptRecord
from kafkaio.types import Record


class AcquiredCursor(RecordCursor):
    """Iterates over the records of one batch that are locked for this consumer.

    It returns each record as a `ShareRecord`. A record is left out if its offset was
    not acquired, or if it was decided or lost before its turn came. A cursor that was
    cut returns all of its records, whatever became of them: they were handed out. For
    those that it returns, or skips, it sets ``handed_to`` of their range.

    When the cursor is created, it decides `GAP` for the acquired offsets of the batch
    that have no record: compaction has removed it.

    Args:
        cursor: a cursor over the whole batch. It is not moved.
        acquired: the ranges of the partition, sorted by offset; they may have offsets
            of other batches, too.
        first: the first offset that counts: that of the batch, or the one after the
            batch before it, so that what is missing between them is a gap as well.

    Attributes:
        acquired: the ranges that have offsets of the batch.
        remaining: number of acquired records that are left; those that are lost, or
            decided, before their turn are among them. It is 0 after the last one.
        next_offset: the offset of the first acquired record at first; then as that of
            `RecordCursor`.

    Raises:
        CorruptRecord: the records of the batch are not in the order of their offsets.
            No gap was decided.
    """

    __slots__ = ("_is_cut", "_pairs", "acquired")

    def __init__(
        self, cursor: RecordCursor, acquired: Sequence[Acquired], first: int
    ) -> None:
        self._records = []
        self._is_cut = False
        self._batch_end = cursor._batch_end
        self.bytes_left: int = cursor.bytes_left
        records = list(cursor.copy())
        for one, other in pairwise(records):
            if one.offset >= other.offset:
                raise CorruptRecord(
                    f"the record at offset {other.offset} follows the one at offset "
                    f"{one.offset}"
                )
        self.acquired: tuple[Acquired, ...] = tuple(
            part
            for part in acquired
            if part.last >= first and part.first < self._batch_end
        )
        self._pairs: list[tuple[Record, Acquired]] = []
        offsets = [record.offset for record in records]
        for part in self.acquired:
            at = max(first, part.first)
            end = min(part.last + 1, self._batch_end)
            for index in range(bisect_left(offsets, at), bisect_left(offsets, end)):
                if at < offsets[index]:
                    part.decide_range(at, offsets[index] - 1, GAP)
                at = offsets[index] + 1
                self._pairs.append((records[index], part))
            if at < end:
                part.decide_range(at, end - 1, GAP)
        # Reversed, as those of `RecordCursor`.
        self._pairs.reverse()
        self.remaining: int = len(self._pairs)
        self.next_offset: int = (
            self._pairs[-1][0].offset if self._pairs else self._batch_end
        )

    def __next__(self) -> AnyShareRecord:
        while self.remaining:
            self.remaining -= 1
            record, part = self._pairs.pop()
            self.next_offset = record.offset + 1 if self.remaining else self._batch_end
            if self._is_cut or part.is_held(record.offset):
                part.handed_to = max(part.handed_to, record.offset + 1)
                return share_record(record, part, record.key, record.value)
        raise StopIteration

    def copy(self) -> AcquiredCursor:
        """Return an independent cursor at the same position."""
        other = object.__new__(AcquiredCursor)
        other._records = []
        other._is_cut = self._is_cut
        other._pairs = self._pairs[:]
        other._batch_end = self._batch_end
        other.acquired = self.acquired
        other.bytes_left = self.bytes_left
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    def cut(self, limit: int) -> AcquiredCursor:
        """Take the next records, at most ``limit``, and return a cursor over them."""
        piece = self.copy()
        piece._is_cut = True
        self.skip(limit)
        piece.remaining -= self.remaining
        # The pairs are reversed: those of the piece are the last ones of the list.
        piece._pairs = piece._pairs[self.remaining :]
        piece._batch_end = self.next_offset
        return piece

    def decide_rest(self, decision: int) -> int:
        """Decide what becomes of the records that are left; return how many.

        The cursor does not move, but has no record to return any more.
        """
        if not self.remaining:
            return 0
        first, last = self.next_offset, self._batch_end - 1
        return sum(part.decide_range(first, last, decision) for part in self.acquired)

    def stop(self) -> None:
        """End the iteration and release the batch; ``next_offset`` stays."""
        super().stop()
        self._pairs = []

    def __repr__(self) -> str:
        return f"<AcquiredCursor at {self.next_offset} | {self.remaining} remaining>"
