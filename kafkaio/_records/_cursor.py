"""The cursors over a batch's records: the pure twins, which are the reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from kafkaio._records._acquired import GAP, Acquired, AnyShareRecord, share_record
from kafkaio._records._layout import Origin
from kafkaio._records._pure import decode_records
from kafkaio.errors import CorruptRecord
from kafkaio.types import Record


class RecordCursor:
    """Iterates over the records of one batch, in order.

    The whole batch is checked when the cursor is created, so that the iteration cannot
    fail. `BatchHeader.extend` adds the records of a batch that follows. A cursor is not
    thread-safe.

    Args:
        data: holds the records.
        position: where they begin; they fill the data to its end.
        count: the number of records.
        origin: the facts that they share; records before its start offset are left out.
        batch_end: the offset after the batch.

    Attributes:
        remaining: number of records that are left.
        bytes_left: size of the records that are left as they are encoded, or more.
        next_offset: the offset to continue from after the records taken so far. It is
            the start offset first, then the offset after the last record taken; after
            a batch's last record it is ``batch_end``, because compaction may have
            removed records at the end.

    Raises:
        CorruptRecord: as `decode_records` says.
    """

    __slots__ = (
        "_batch_end",
        "_ends",
        "_owner",
        "_records",
        "bytes_left",
        "next_offset",
        "remaining",
    )

    def __init__(
        self, data: bytes, position: int, count: int, origin: Origin, batch_end: int
    ) -> None:
        # Reversed, since `pop` takes from the end of a list at once.
        self._records = decode_records(data, position, count, origin)
        self._records.reverse()
        self._batch_end = batch_end
        # The offset after each batch but the last, by the records that are left then.
        self._ends: dict[int, int] = {}
        # The object whose memory holds the batch. None if it is not known, and for
        # copies, which may be kept for long.
        self._owner: object = None
        self.bytes_left: int = len(data) - position
        self.remaining: int = len(self._records)
        self.next_offset: int = origin.start_offset if self._records else batch_end

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        if not self.remaining:
            raise StopIteration
        self.remaining -= 1
        record = self._records.pop()
        # After the last record the batch is over: compaction may have removed records
        # at its end, and the next fetch must not ask for their offsets again.
        if self.remaining:
            self.next_offset = self._ends.get(self.remaining, record.offset + 1)
        else:
            self.next_offset = self._batch_end
        return record

    def __length_hint__(self) -> int:
        return self.remaining

    def take(self, limit: int) -> list[Record]:
        """Take the next records, at most ``limit``."""
        return list(islice(self, max(0, limit)))

    def take_keys(self, limit: int) -> list[bytes | None]:
        """Take the next records, at most ``limit``; return only their keys."""
        return [record.key for record in self.take(limit)]

    def take_values(self, limit: int) -> list[bytes | None]:
        """Take the next records, at most ``limit``; return only their values."""
        return [record.value for record in self.take(limit)]

    def skip(self, count: int) -> None:
        """Skip the next records, at most ``count``."""
        for _ in islice(self, max(0, count)):
            pass

    def copy(self) -> RecordCursor:
        """Return an independent cursor at the same position."""
        other = object.__new__(RecordCursor)
        other._records = self._records[:]
        other._batch_end = self._batch_end
        other._ends = self._ends.copy()
        other._owner = None
        other.bytes_left = self.bytes_left
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    def cut(self, limit: int) -> RecordCursor:
        """Take the next records, at most ``limit``, and return a cursor over them."""
        # The records are reversed: those of the piece are the last ones of the list.
        piece = self.copy()
        piece.remaining = max(0, min(limit, self.remaining))
        rest = self.remaining - piece.remaining
        piece._records = self._records[rest:]
        piece._ends = {left - rest: end for left, end in self._ends.items()}
        self.skip(piece.remaining)
        piece._batch_end = self.next_offset
        return piece

    def detach(self) -> None:
        """Copy the bytes of the records that are left, and release the batch.

        Until then a cursor, and every cursor cut from it, keeps the whole buffer alive
        that the batch was received in.
        """
        self._owner = None

    def stop(self) -> None:
        """End the iteration and release the batch; ``next_offset`` stays."""
        self.remaining = 0
        self._records = []
        self._owner = None

    def __repr__(self) -> str:
        return f"<RecordCursor at {self.next_offset} | {self.remaining} remaining>"


class AcquiredCursor(RecordCursor):
    """Iterates over the records of one batch that are locked for this consumer.

    It returns each record as a `ShareRecord`. A record is left out if its offset was
    not acquired, or if it was decided or lost before its turn came. A cursor that was
    cut returns each of its records, whatever becomes of them: they were handed out by
    the cut. For those that it returns, skips or cuts, a cursor sets ``handed_to`` of
    their range; a copy does not, because it looks ahead.

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

    __slots__ = ("_is_copy", "_is_cut", "_pairs", "acquired")

    def __init__(
        self, cursor: RecordCursor, acquired: Sequence[Acquired], first: int
    ) -> None:
        self._records = []
        self._is_cut = self._is_copy = False
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
            if self._returns(part, record.offset):
                if not self._is_copy:
                    part.handed_to = max(part.handed_to, record.offset + 1)
                return share_record(record, part, record.key, record.value)
        raise StopIteration

    def copy(self) -> AcquiredCursor:
        """Return an independent cursor at the same position."""
        other = object.__new__(AcquiredCursor)
        other._records = []
        other._is_cut = self._is_cut
        other._is_copy = True
        other._pairs = self._pairs[:]
        other._batch_end = self._batch_end
        other.acquired = self.acquired
        other.bytes_left = self.bytes_left
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    def cut(self, limit: int) -> AcquiredCursor:
        """Take the next records, at most ``limit``, and return a cursor over them.

        ``remaining`` of that is the exact number of its records.
        """
        piece = self.copy()
        self.skip(limit)
        # The pairs are reversed: those of the piece are the last ones of the list.
        piece._pairs = [
            (record, part)
            for record, part in piece._pairs[self.remaining :]
            if self._returns(part, record.offset)
        ]
        piece._is_cut = True
        piece._batch_end = self.next_offset
        piece.remaining = len(piece._pairs)
        return piece

    def _returns(self, part: Acquired, offset: int) -> bool:
        return self._is_cut or part.is_held(offset)

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
