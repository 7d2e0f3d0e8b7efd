"""Records of one assignment that are worked on many at a time, and their order."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["Strands"]


class Strands:
    """What has been begun and done of one partition.

    Args:
        start: the first offset.
    """

    def __init__(self, start: int) -> None:
        #: All before it is done.
        self.done_to = start
        self._done: set[int] = set()
        self._running: dict[Hashable, int] = {}
        self._last: dict[Hashable, int] = {}

    def begin(self, offset: int, strand: Hashable) -> str:
        """A record is begun; returns what is wrong about that, or nothing.

        Args:
            offset: its offset.
            strand: what it must not run beside, and has to come in order with.
        """
        if offset in self._done or offset < self.done_to:
            return "it is done already"
        if strand in self._running:
            return f"beside offset {self._running[strand]} of {strand}"
        last = self._last.get(strand, -1)
        if offset < last:
            return f"after offset {last} of {strand}"
        self._running[strand] = self._last[strand] = offset
        return ""

    def stop(self, strand: Hashable) -> None:
        """What was begun of a strand runs no more; that does not say that it is done.

        It may be begun once more, nothing before it and nothing behind it until then.
        """
        self._running.pop(strand, None)

    def done(self, offset: int) -> range:
        """A record is done; returns what all before and itself is done of by that."""
        self._done.add(offset)
        first = self.done_to
        while self.done_to in self._done:
            self._done.remove(self.done_to)
            self.done_to += 1
        return range(first, self.done_to)
