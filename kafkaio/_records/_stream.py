"""The pure twin of handing records out one at a time: it says what is right."""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._records._cursor import RecordCursor
from kafkaio.types import Record

__all__ = ["Handout"]


class Handout:
    """The records that are being handed out, and how far.

    Its owner reads and writes the attributes; ``take`` and ``take_run`` move on.

    Args:
        refill: called when there is no credit or no record left. Returns whether it
            gave more of both; False where the caller has to go the long way. What it
            raises, `take` raises.
        convert: makes of each record what is handed out, or None. The record is
            handed out again if it raises.

    Attributes:
        cursor: the records at hand, or None.
        mark: every record of the cursor before this offset is finished; -1 while
            nothing was taken by `take` since the owner set it.
        credit: records that `take` may hand out before it asks for more.
    """

    __slots__ = ("_convert", "_refill", "credit", "cursor", "mark")

    def __init__(
        self,
        refill: Callable[[], bool],
        convert: Callable[[Record], Record] | None = None,
    ) -> None:
        self._refill = refill
        self._convert = convert
        self.cursor: RecordCursor | None = None
        self.mark = -1
        self.credit = 0

    def take(self) -> Record | None:
        """Take the next record; all that were taken before are finished.

        Returns:
            None where there is none that could be taken without more ado.
        """
        cursor = self.cursor
        if self.credit <= 0 or cursor is None or not cursor.remaining:
            if not self._refill():
                return None
            cursor = self.cursor
            if cursor is None or not cursor.remaining:
                return None
        self.mark = cursor.next_offset
        self.credit -= 1
        if self._convert is None:
            return next(cursor)
        return self._converted(cursor, self._convert)

    def take_run(self, limit: int) -> list[Record]:
        """Take the next records of the cursor, at most ``limit`` of them.

        It ends before a record that cannot be converted, and raises only where that
        is the first. `mark` and `credit` stay.
        """
        cursor, convert = self.cursor, self._convert
        if cursor is None:
            return []
        if convert is None:
            return cursor.take(limit)
        records: list[Record] = []
        while len(records) < limit and cursor.remaining:
            try:
                records.append(self._converted(cursor, convert))
            except Exception:
                if records:
                    break
                raise
        return records

    def _converted(
        self, cursor: RecordCursor, convert: Callable[[Record], Record]
    ) -> Record:
        record = convert(next(cursor.copy()))
        cursor.skip(1)
        return record
