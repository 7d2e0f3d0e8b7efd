"""What was acquired of one partition by one fetch, beside the batches that came.

`acquired` is the truth: the data may hold more batches, and more records of a batch.
Offsets at which there is no record (a marker of a transaction, a record that the log
cleaner has removed) have to be acknowledged as gaps, or they would stay locked, come
again, and count as deliveries until they are archived.

Nothing in a batch is reliable before its checksum is right, and only then is an offset
without a record a gap. So the acquired offsets are assigned to the batches one after
the other, each when its turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaio._named_tuple import NamedTuple
from kafkaio._records._acquired import HELD
from kafkaio._records.batch import Acquired, Batch

#: The offset after every other.
END: Final = 2**63 - 1


class Acquisition:
    """The acquired ranges of one partition in one answer.

    Args:
        ranges: the ranges, sorted by offset.

    Attributes:
        ranges: see above.
        at: the acquired offsets before this one were assigned to batches.
    """

    __slots__ = ("at", "ranges")

    def __init__(self, ranges: Sequence[Acquired]) -> None:
        self.ranges: tuple[Acquired, ...] = tuple(ranges)
        self.at: int = self.ranges[0].first if self.ranges else 0

    @property
    def is_over(self) -> bool:
        """Whether no offset is held any more that was not assigned yet."""
        return not self.holds(END)

    def holds(self, end: int) -> bool:
        """Whether an offset is held that was not assigned and is before ``end``."""
        return held_between(self.ranges, self.at, end) > 0

    def decide(self, end: int, decision: int) -> int:
        """Assign the offsets before ``end``, and decide what becomes of them.

        Returns:
            How many of them were held.
        """
        count = decide_between(self.ranges, self.at, end, decision)
        self.assign(end)
        return count

    def decide_rest(self, decision: int) -> int:
        """Do so with all offsets that were not assigned yet."""
        return self.decide(END, decision)

    def assign(self, end: int) -> None:
        """Note that the offsets before ``end`` are those of a batch."""
        self.at = max(self.at, end)


class Claim(NamedTuple):
    """What may be handed out of one batch: the tag of the batch in `Buffers`.

    Attributes:
        acquisition: the acquired offsets.
        records: how many of them are in the batch, as far as headers can be believed.
    """

    acquisition: Acquisition
    records: int


def count_of(batch: Batch, claim: Claim) -> int:
    """Return how many records of a batch there are to hand out, for `Buffers`."""
    del batch
    return claim.records


def claims(
    acquisition: Acquisition, batches: Sequence[Batch]
) -> list[tuple[Batch, Claim]]:
    """Return each batch with its claim.

    One that seems to have no acquired offsets is among them: that is not known before
    its checksum was verified.
    """
    ranges, at = acquisition.ranges, acquisition.at
    claimed: list[tuple[Batch, Claim]] = []
    for batch in batches:
        end = max(at, batch.next_offset)
        count = sum(
            max(0, min(part.last + 1, end) - max(part.first, at)) for part in ranges
        )
        claimed.append((batch, Claim(acquisition, count)))
        at = end
    return claimed


def decide_between(
    ranges: Sequence[Acquired], first: int, end: int, decision: int
) -> int:
    """Decide what becomes of the offsets from ``first`` up to, but not with, ``end``.

    Returns:
        How many of them were held.
    """
    return sum(
        part.decide_range(max(first, part.first), min(end - 1, part.last), decision)
        for part in ranges
        if part.held and part.first < end and part.last >= first
    )


def held_between(ranges: Sequence[Acquired], first: int, end: int) -> int:
    """Return how many offsets are held from ``first`` up to, but not with, ``end``."""
    return sum(
        part.states.count(HELD, max(0, first - part.first), end - part.first)
        for part in ranges
        if part.held and part.first < end and part.last >= first
    )
