"""Records in flight: the deliveries of the offsets that a share partition knows.

A range of offsets that was acquired at once has one `Delivery` for all of them, until
one of its offsets is treated differently: then each has its own (`InFlight.split`).
The difference is visible: a range that is whole is acquired again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf

#: The member of a delivery that nobody holds.
NOBODY = ""


class RecordState(IntEnum):
    """The states of a record, by Kafka's numbers."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether the record is never delivered again."""
        return self in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


@dataclass(slots=True)
class Delivery:
    """The state of one offset, or of a whole range.

    Attributes:
        state: the state.
        count: how often it was delivered.
        member: the member that holds the lock; empty if nobody does.
        deadline: when the lock ends.
    """

    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = NOBODY
    deadline: float = inf

    def lock(self, member: str, deadline: float) -> None:
        """Deliver it to a member."""
        self.state = RecordState.ACQUIRED
        self.count += 1
        self.member = member
        self.deadline = deadline

    def unlock(self, state: RecordState) -> None:
        """Take it from the member that holds it."""
        self.state = state
        self.member = NOBODY
        self.deadline = inf


class InFlight:
    """A range of offsets, of which the first and the last never change.

    Attributes:
        first: its first offset.
        last: its last offset.
        deliveries: one for the whole range, or one for each offset.
        is_split: whether each offset has its own.
    """

    __slots__ = ("deliveries", "first", "is_split", "last")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        self.last = last
        self.deliveries: list[Delivery] = [delivery]
        self.is_split = False

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Delivery:
        """The delivery of the whole range, which must not be split."""
        assert not self.is_split
        return self.deliveries[0]

    def split(self) -> None:
        """Give each offset a delivery of its own."""
        if not self.is_split:
            whole = self.deliveries[0]
            self.deliveries = [replace(whole) for _ in range(len(self))]
            self.is_split = True

    def between(self, first: int, last: int) -> Iterator[tuple[int, Delivery]]:
        """Yield the offsets of a split range that lie in another one."""
        for offset in range(max(first, self.first), min(last, self.last) + 1):
            yield offset, self.deliveries[offset - self.first]

    def runs(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield first offset, last offset and delivery of each part."""
        if not self.is_split:
            yield self.first, self.last, self.deliveries[0]
            return
        for offset, delivery in enumerate(self.deliveries, self.first):
            yield offset, offset, delivery

    @property
    def is_final(self) -> bool:
        """Whether no offset is ever delivered again."""
        return all(one.state.is_final for one in self.deliveries)
