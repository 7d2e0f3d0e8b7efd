"""Which partition a record goes to, when its sender names none.

A record with a key goes where its key's hash says, so that all records of a key stay
in order; the hash is murmur2 as in Kafka's Java client, over *all* partitions of the
topic, whether they have a leader now or not. A record without a key follows the
uniform sticky partitioner of KIP-794: one partition takes a share of bytes, then the
next is drawn, partitions with short queues more often than ones with long queues, so
that a slow broker gets less. The share is a batch's worth, yet no more than
`STICKY_BYTES`: batches may be large, and records that come seldom would all go to one
partition for minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from kafkaio._records._impl import key_partition, murmur2

__all__ = ["STICKY_BYTES", "StickyPartition", "draw", "key_partition", "murmur2"]

#: The largest share of bytes that keyless records bring to a partition at a time.
STICKY_BYTES = 65_536


def draw(partitions: Sequence[int], loads: Sequence[int] | None, roll: float) -> int:
    """Draw one of ``partitions``, those with a smaller load more often.

    Args:
        partitions: the numbers to choose from, not empty.
        loads: how many shares of bytes wait for each of them, or None to draw evenly.
            The weight of a partition is ``max(loads) + 1 - load`` (KIP-794).
        roll: a number in [0, 1).
    """
    if loads is None:
        return partitions[int(roll * len(partitions))]
    most = max(loads) + 1
    table = list(accumulate(most - load for load in loads))
    return partitions[bisect_right(table, int(roll * table[-1]))]


class StickyPartition:
    """The partition that keyless records of one topic go to now (KIP-794).

    The caller draws: it asks ``is_due`` before each record that begins a batch, calls
    ``switch`` with the partition drawn, and takes the bytes appended from ``left``.

    Attributes:
        partition: its number, -1 before the first is drawn.
        left: bytes that it may still take, whether batches are full or not.
        share: bytes after which it may be left; twice as many are the most.
    """

    __slots__ = ("left", "partition", "share")

    def __init__(self, sticky_bytes: int) -> None:
        self.share = max(1, sticky_bytes)
        self.switch(-1)

    def is_due(self, size: int) -> bool:
        """Whether a record that begins a batch should go to a partition drawn anew.

        A switch waits for the batch to fill, so that it leaves no small batch behind,
        yet not for longer than twice the share: then nothing is ``left``. A batch that
        the next record does not fit into has had its share, though it may have room.

        Args:
            size: bytes of that record.
        """
        return self.partition < 0 or self.left - size <= self.share

    def switch(self, partition: int) -> None:
        """Stick to this partition from now on."""
        self.partition = partition
        self.left = 2 * self.share
