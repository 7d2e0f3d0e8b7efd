"""How many bytes a consumer fetches ahead of its reader.

A reader that is slower than its brokers gains nothing from a deep buffer: it only costs
memory. One that is faster needs every byte that can be on its way. So fetching runs
ahead by a part of the buffer, and by all of it once the reader had to wait for a large
answer. After many large answers that it did not wait for it is a part again.
"""

from __future__ import annotations

from typing import Final

#: Answers' worth of bytes that share the whole buffer. Memory is reused sooner if
#: several do.
ANSWERS: Final = 5
#: Answers' worth of bytes at first: one is read, one waits, one is on its way.
_FEW: Final = 3
#: Large answers in a row, without a reader that waited, after which it is few again.
_CALM: Final = 2 * ANSWERS


class ReadAhead:
    """The bytes that may be fetched ahead of the reader.

    Args:
        limit: the size of the buffer.

    Attributes:
        limit: the size of the buffer.
        size: bytes that may be fetched ahead now.
    """

    __slots__ = ("_calm", "_has_begun", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.size: int = self._least
        self._has_begun = False
        self._calm = 0

    def __repr__(self) -> str:
        return f"<ReadAhead {self.size} of {self.limit} bytes>"

    @property
    def _least(self) -> int:
        return max(1, self.limit * _FEW // ANSWERS)

    def answered(self, *, is_awaited: bool) -> bool:
        """Note a large answer: one that used much of its room.

        Small ones say nothing: a deeper buffer gains nothing for a reader that waits
        for a few new records.

        Args:
            is_awaited: whether the reader had nothing to read, or waits for more.

        Returns:
            Whether the size has changed.
        """
        # For the first answer every reader waits.
        if not self._has_begun:
            self._has_begun = True
            return False
        before = self.size
        if is_awaited:
            self.size, self._calm = self.limit, 0
        else:
            self._calm += 1
            if self._calm >= _CALM:
                self.size = self._least
        return self.size != before
