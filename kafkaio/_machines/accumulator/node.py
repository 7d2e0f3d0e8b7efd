"""What the accumulator knows of one broker."""

from __future__ import annotations

__all__ = ["NodeState"]


class NodeState:
    """One broker: how busy it is, and whose turn it is to go first.

    Attributes:
        in_flight: requests sent and not answered.
        turn: which of the node's partitions is first in the next request.
    """

    __slots__ = ("_ready_since", "in_flight", "turn")

    def __init__(self) -> None:
        self.in_flight = 0
        self.turn = 0
        # Since when something was ready that has not been sent; None if nothing is.
        self._ready_since: float | None = None

    def became_ready(self, now: float) -> None:
        """Note that something could be sent."""
        if self._ready_since is None:
            self._ready_since = now

    def sent(self, now: float, partitions: int) -> None:
        """Note that a request went out, with a batch of so many partitions."""
        self.in_flight += 1
        self.turn += partitions
        self._ready_since = None

    def answered(self) -> None:
        """Note that a request was answered or lost."""
        self.in_flight -= 1

    def is_stalled(self, now: float, patience: float) -> bool:
        """Whether it could take nothing for longer than ``patience`` seconds."""
        return self._ready_since is not None and now - self._ready_since > patience
