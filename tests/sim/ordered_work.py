"""Concurrent work on the records of one partition, and the order it must keep."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["OrderedWork"]


class OrderedWork:
    """The records of one partition that were begun and done.

    Args:
        start: the first offset.
    """

    def __init__(self, start: int) -> None:
        #: All records before this offset are done.
        self.done_to = start
        self._done: set[int] = set()
        self._running: dict[Hashable, int] = {}
        self._last: dict[Hashable, int] = {}

    def begin(self, offset: int, order_key: Hashable) -> str:
        """Work on a record begins; return what is wrong with that, or an empty string.

        Args:
            offset: its offset.
            order_key: records of one key must be worked on in order, one at a time.
        """
        if offset in self._done or offset < self.done_to:
            return "it is done already"
        if order_key in self._running:
            return f"beside offset {self._running[order_key]} of {order_key}"
        last = self._last.get(order_key, -1)
        if offset < last:
            return f"after offset {last} of {order_key}"
        self._running[order_key] = self._last[order_key] = offset
        return ""

    def stop(self, order_key: Hashable) -> None:
        """Work on the record of a key has ended, which does not mean that it is done.

        Work on the same record may begin again, before that on any other of its key.
        """
        self._running.pop(order_key, None)

    def done(self, offset: int) -> range:
        """A record is done; return the offsets that are now done without a gap."""
        self._done.add(offset)
        first = self.done_to
        while self.done_to in self._done:
            self._done.remove(self.done_to)
            self.done_to += 1
        return range(first, self.done_to)
