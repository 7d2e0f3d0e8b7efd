"""The cursor over a batch's records: the pure twin, which is the reference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kafkaio._records._layout import Origin
from kafkaio._records._pure import decode_records
from kafkaio.types import Record


class RecordCursor:
    """Iterates over the records of one batch, in order.

    The whole batch is checked when the cursor is created, so that the iteration cannot
    fail. A cursor is not thread-safe.

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
            the batch's last record it is ``batch_end``, because compaction may have
            removed records at the end.

    Raises:
        CorruptRecord: as `decode_records` says.
    """

    __slots__ = ("_batch_end", "_records", "bytes_left", "next_offset", "remaining")

    def __init__(
        self, data: bytes, position: int, count: int, origin: Origin, batch_end: int
    ) -> None:
        # Reversed, since `pop` takes from the end of a list at once.
        self._records = decode_records(data, position, count, origin)
        self._records.reverse()
        self._batch_end = batch_end
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
        self.next_offset = record.offset + 1 if self.remaining else self._batch_end
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
        other.bytes_left = self.bytes_left
        other.remaining = self.remaining
        other.next_offset = self.next_offset
        return other

    def cut(self, limit: int) -> RecordCursor:
        """Take the next records, at most ``limit``, and return a cursor over them."""
        # The records are reversed: those of the piece are the last ones of the list.
        piece = self.copy()
        piece.remaining = max(0, min(limit, self.remaining))
        piece._records = self._records[self.remaining - piece.remaining :]
        self.skip(piece.remaining)
        piece._batch_end = self.next_offset
        return piece

    def detach(self) -> None:
        """Copy the bytes of the records that are left, and release the batch.

        Until then a cursor, and every cursor cut from it, keeps the whole buffer alive
        that the batch was received in.
        """

    def stop(self) -> None:
        """End the iteration and release the batch; ``next_offset`` stays."""
        self.remaining = 0
        self._records = []

    def __repr__(self) -> str:
        return f"<RecordCursor at {self.next_offset} | {self.remaining} remaining>"
