"""The pure twin of the cursor over a batch's records: it says what is right."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaio._records._layout import Origin
from kafkaio._records._pure import decode_records
from kafkaio.types import Record

__all__ = ["RecordCursor"]


class RecordCursor:
    """Hands out the records of one batch, in order, when they are asked for.

    The whole batch is checked when the cursor is made, so that handing out never
    fails. A cursor must not be used by two threads at a time.

    Args:
        data: what holds the records.
        position: where they begin; they fill the data to its end.
        count: how many there are.
        origin: what they share; those before its start offset are left out.
        batch_end: where to read on after the batch.

    Attributes:
        remaining: records that are still to be handed out.
        bytes_left: bytes that those take as they are encoded, or somewhat more.
        next_offset: where to read on after what was handed out so far: the start
            offset, then the offset after the last record, and after the last of the
            batch ``batch_end``, because compaction may have taken records off it.

    Raises:
        CorruptRecord: as `decode_records` says.
    """

    __slots__ = ("_batch_end", "_records", "bytes_left", "next_offset", "remaining")

    def __init__(
        self, data: bytes, position: int, count: int, origin: Origin, batch_end: int
    ) -> None:
        self._records = decode_records(data, position, count, origin)
        self._records.reverse()
        self._batch_end = batch_end
        self.bytes_left = len(data) - position
        self.remaining = len(self._records)
        self.next_offset = origin.start_offset if self._records else batch_end

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        if not self.remaining:
            raise StopIteration
        self.remaining -= 1
        record = self._records.pop()
        self.next_offset = record.offset + 1 if self.remaining else self._batch_end
        return record

    def __length_hint__(self) -> int:
        return self.remaining

    def take(self, limit: int) -> list[Record]:
        """Takes the next records, at most ``limit`` of them."""
        return [next(self) for _ in range(min(limit, self.remaining))]

    def take_keys(self, limit: int) -> list[bytes | None]:
        """Takes the next records, at most ``limit``, and gives only their keys."""
        return [record.key for record in self.take(limit)]

    def take_values(self, limit: int) -> list[bytes | None]:
        """Takes the next records, at most ``limit``, and gives only their values."""
        return [record.value for record in self.take(limit)]

    def skip(self, count: int) -> None:
        """Passes over the next records, at most ``count`` of them."""
        for _ in range(min(count, self.remaining)):
            next(self)

    def copy(self) -> RecordCursor:
        """Returns a cursor at the same place, which goes its own way."""
        other = object.__new__(RecordCursor)
        other._records = self._records[:]
        other._batch_end = self._batch_end
        other.bytes_left = self.bytes_left
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    def cut(self, limit: int) -> RecordCursor:
        """Takes the next records, at most ``limit``, as a cursor of their own."""
        piece = self.copy()
        piece.remaining = max(0, min(limit, self.remaining))
        piece._records = self._records[self.remaining - piece.remaining :]
        self.skip(piece.remaining)
        piece._batch_end = self.next_offset
        return piece

    def detach(self) -> None:
        """Keeps the bytes that are left, and nothing around them.

        Before it, a cursor and those cut from it keep all that the batch came in.
        """

    def stop(self) -> None:
        """Ends the iteration and lets go of the batch; ``next_offset`` stays."""
        self.remaining = 0
        self._records = []

    def __repr__(self) -> str:
        return f"<RecordCursor at {self.next_offset} | {self.remaining} remaining>"
