"""Bounds the bytes that all connections of a client receive at once.

A large frame reserves its size before memory is allocated for it. If the budget is
exhausted, the frame waits, and its connection reads nothing meanwhile, so the broker
waits as well. The reservation ends when the frame has been decoded; records count
against the budgets of consumers from then on.

Invariant: nothing waits while nothing is reserved. So one frame can always proceed,
however large, and frames cannot wait for each other. A peer that stops in the middle of
a frame keeps its reservation until the request times out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf


class ReceiveBudget:
    """The bytes that large frames may reserve; those that wait proceed in their order.

    Args:
        limit: the most bytes to reserve at once, except for a single frame.

    Attributes:
        reserved: bytes reserved now.
    """

    __slots__ = ("_limit", "_waiting", "reserved")

    def __init__(self, limit: float = inf) -> None:
        self._limit = limit
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self.reserved: int = 0

    def __repr__(self) -> str:
        return f"<ReceiveBudget {self.reserved} reserved, {len(self._waiting)} wait>"

    def reserve(self, size: int, granted: Callable[[], None]) -> bool:
        """Reserve ``size`` bytes now, or later.

        Args:
            size: how many bytes.
            granted: called when they are reserved, if that is not now.

        Returns:
            Whether they are reserved now.
        """
        if self._waiting or not self._fits(size):
            self._waiting.append((size, granted))
            return False
        self.reserved += size
        return True

    def add(self, size: int) -> None:
        """Reserve ``size`` bytes that exist already."""
        self.reserved += size

    def release(self, size: int) -> None:
        """End a reservation."""
        self.reserved -= size
        self._grant()

    def withdraw(self, granted: Callable[[], None]) -> None:
        """Forget a reservation that waits."""
        kept = [each for each in self._waiting if each[1] != granted]
        self._waiting = deque(kept)
        self._grant()

    def _fits(self, size: int) -> bool:
        return not self.reserved or self.reserved + size <= self._limit

    def _grant(self) -> None:
        # In order: a large frame at the front would starve if smaller ones passed it.
        while self._waiting and self._fits(self._waiting[0][0]):
            size, granted = self._waiting.popleft()
            self.reserved += size
            granted()
