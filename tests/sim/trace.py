"""What happened, as a short text for people and a hash to compare runs by."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Final

__all__ = ["Trace"]

_KEPT: Final = 60


class Trace:
    """Everything that happened in a run.

    Attributes:
        last: the last lines that people want to see.
    """

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=_KEPT)
        self._hash = blake2b(digest_size=16)
        self._is_over = False

    @property
    def digest(self) -> str:
        """The same for two runs in which the same happened at the same times."""
        return self._hash.hexdigest()

    def add(self, at: float, what: str, data: bytes = b"") -> None:
        """Note something that need not be shown."""
        if self._is_over:
            return
        self._hash.update(b"%r %s %d " % (at, what.encode(), len(data)))
        self._hash.update(data)

    def say(self, at: float, what: str) -> None:
        """Note something that is worth a line."""
        self.add(at, what)
        if not self._is_over:
            self.last.append(f"{at:9.3f} s  {what}")

    def end(self) -> None:
        """Note nothing more."""
        self._is_over = True
