"""Hands records out one at a time: the pure twin, which is the reference."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from kafkaio._records._cursor import RecordCursor
from kafkaio.types import Record


class Handout:
    """The next records of a reader, and its progress.

    The reader sets the attributes; `take` and `take_run` move the cursor.

    Args:
        refill: called if no record is left, or none may be handed out (``credit``).
            Returns True if it set a cursor with records and a credit; False if the
            caller has to wait for records. `take` raises what it raises.
        convert: applied to each record before it is handed out; None for no
            conversion. It returns None for a record that cannot be taken without
            waiting. Then, and if it raises, the same record comes next again.
        clock: seconds, read before each record; None in Python sets no limit of time,
            and has the compiled twin read a clock of the system that costs little.

    Attributes:
        convert: see above; it can be set.
        cursor: the records to hand out; None for none.
        mark: records of the cursor before this offset are finished, because a later
            one was taken; -1 if `take` has taken none since the reader set the cursor.
        credit: number of records that `take` may hand out before the next ``refill``.
            It is 0 when the time of the last `grant` is over.
    """

    __slots__ = ("_clock", "_refill", "_until", "convert", "credit", "cursor", "mark")

    def __init__(
        self,
        refill: Callable[[], bool],
        convert: Callable[[Record], Record | None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._refill = refill
        self.convert: Callable[[Record], Record | None] | None = convert
        self._clock = clock
        self._until = inf
        self.cursor: RecordCursor | None = None
        self.mark: int = -1
        self.credit: int = 0

    def grant(self, credit: int, seconds: float) -> None:
        """Let `take` hand out that many records, for about that many seconds."""
        self.credit = credit
        self._until = inf if self._clock is None else self._clock() + seconds

    def take(self) -> Record | None:
        """Take the next record; all records taken before count as finished.

        Returns:
            None if there is none that can be taken without waiting.
        """
        while True:
            cursor = self.cursor
            # Without credit, `refill` runs before the next record, and the reader does
            # what is due.
            if self._clock is not None and self._clock() >= self._until:
                self.credit = 0
            if self.credit <= 0 or cursor is None or not cursor.remaining:
                if not self._refill():
                    return None
                cursor = self.cursor
                if cursor is None or not cursor.remaining:
                    return None
            # Before the record is taken: it is in the user's hands, and not finished,
            # until the next one is taken.
            self.mark = cursor.next_offset
            self.credit -= 1
            if self.convert is None:
                record = next(cursor, None)
            else:
                record = self._converted(cursor, self.convert)
            # The cursor of a share consumer can end without a record: what it had left
            # was lost meanwhile.
            if record is not None or cursor.remaining:
                return record

    def take_run(self, limit: int) -> list[Record]:
        """Take the next records of the cursor, at most ``limit``.

        It stops before a record that cannot be converted now, and raises only if that
        is the first. ``mark`` does not change, and only ``convert`` may change
        ``credit``.
        """
        cursor, convert = self.cursor, self.convert
        if cursor is None:
            return []
        if convert is None:
            return cursor.take(limit)
        records: list[Record] = []
        while len(records) < limit and cursor.remaining:
            try:
                record = self._converted(cursor, convert)
            except Exception:
                if records:
                    break
                raise
            if record is None:
                break
            records.append(record)
        return records

    def _converted(
        self, cursor: RecordCursor, convert: Callable[[Record], Record | None]
    ) -> Record | None:
        # On a copy: if `convert` raises, the same record comes next again.
        record = next(cursor.copy(), None)
        converted = None if record is None else convert(record)
        if record is None or converted is not None:
            cursor.skip(1)
        return converted
