"""Whether the assignments that a commit belongs to are still in force.

Within a generation the coordinator accepts a commit of any partition from any member,
also of one that has moved to another member. So each commit takes a `Fence` when it is
called for, and compares it immediately before each request that carries its offsets.

Every assignment has a number that is never used again, and the ledger counts a version
up with each change of what is owned. While the version is the one that the fence has
seen, nothing can have ended: the comparison of these two integers is the whole check.
After a change the numbers are compared, and the fence remembers the new version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kafkaio._machines.membership.ledger import RevokeLedger
from kafkaio.errors import PartitionLost
from kafkaio.types import TopicPartition

#: The ledger never has this version: the numbers are compared each time.
_UNKNOWN: Final = -1


class Fence:
    """The assignments that one commit belongs to.

    Args:
        ledger: the partitions that the member owns.
        free: returns the withheld partitions that no member owns, with their numbers.
        partitions: the partitions to commit. The fence has failed from the beginning
            if one of them is neither owned nor free.
    """

    __slots__ = ("_begun_with", "_free", "_ledger", "_partitions", "_version")

    def __init__(
        self,
        ledger: RevokeLedger,
        free: Callable[[], Mapping[TopicPartition, int]],
        partitions: Collection[TopicPartition],
    ) -> None:
        self._ledger = ledger
        self._free = free
        # The numbers in force then, of these and of others: the ledger makes a new dict
        # with each change. Mostly nothing changes, and nobody looks.
        self._begun_with: Mapping[TopicPartition, int] = ledger.numbers
        self._partitions = tuple(partitions)
        self._version = ledger.version
        for tp in self._partitions:
            if tp not in self._begun_with:
                # The ledger does not know when a free partition is assigned again,
                # perhaps to another member, so its version says nothing about this one.
                self._begun_with = {**free(), **self._begun_with}
                self._version = _UNKNOWN
                break

    def __repr__(self) -> str:
        return f"<Fence {self._numbers} version={self._version}>"

    @property
    def _numbers(self) -> dict[TopicPartition, int | None]:
        return {tp: self._begun_with.get(tp) for tp in self._partitions}

    @property
    def is_foreign(self) -> bool:
        """Whether none of the partitions was owned or free when this was taken."""
        return all(number is None for number in self._numbers.values())

    def serves(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether a fence of these partitions would be the same if it was taken now.

        A program that commits after each record has one fence for many commits.
        """
        return self._version == self._ledger.version and self._partitions == tuple(
            partitions
        )

    def lost(self) -> PartitionLost | None:
        """Return the error of a commit whose assignment has ended; None while it holds.

        An assignment that has ended is never in force again, and neither is the fence.
        """
        version = self._ledger.version
        if self._version == version:
            return None
        owned, free = self._ledger.numbers, self._free()
        numbers = self._numbers
        gone = [
            tp
            for tp, number in numbers.items()
            if number is None or number != owned.get(tp, free.get(tp))
        ]
        if gone:
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(gone))
            return PartitionLost(f"not assigned to this consumer (any more): {names}")
        # Something else has changed. Until the next change one comparison is enough.
        if owned.keys() >= numbers.keys():
            self._version = version
        return None

    def check(self) -> None:
        """Raise if an assignment has ended.

        Raises:
            PartitionLost: one has.
        """
        if (lost := self.lost()) is not None:
            raise lost
