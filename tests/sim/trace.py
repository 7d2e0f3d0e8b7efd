"""A trace of a run: the last lines for people, and a hash to compare runs."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Final

__all__ = ["Trace"]

_KEPT: Final = 60


class Trace:
    """Everything that happened in a run.

    Attributes:
        last: the last lines.
    """

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=_KEPT)
        self._hash = blake2b(digest_size=16)
        self._is_over = False

    @property
    def digest(self) -> str:
        """Equal for two runs in which the same happened at the same times."""
        return self._hash.hexdigest()

    def add(self, at: float, what: str, data: bytes = b"") -> None:
        """Add an event to the hash alone."""
        if self._is_over:
            return
        self._hash.update(b"%r %s %d " % (at, what.encode(), len(data)))
        self._hash.update(data)

    def say(self, at: float, what: str) -> None:
        """Add an event to the hash and to the lines."""
        self.add(at, what)
        if not self._is_over:
            self.last.append(f"{at:9.3f} s  {what}")

    def end(self) -> None:
        """Ignore everything from now on."""
        self._is_over = True
