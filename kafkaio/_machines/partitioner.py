"""Which partition a record goes to if its sender names none.

The hash of a record's key decides, so that all records of a key stay in order. The hash
is murmur2 as in Kafka's Java client, over *all* partitions of the topic, whether they
have a leader now or not.

Records without a key follow the uniform sticky partitioner of KIP-794: one partition
takes a number of bytes, then the next is drawn. Partitions with short queues are drawn
more often than those with long queues, so that a slow broker gets less. The number of
bytes is the size of a batch, but `STICKY_BYTES` at most: batches may be large, and
records at a low rate would all go to one partition for minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from kafkaio._records._impl import key_partition, murmur2

__all__ = ["STICKY_BYTES", "StickyPartition", "draw", "key_partition", "murmur2"]

#: The most bytes of keyless records that go to one partition at a time.
STICKY_BYTES = 65_536


def draw(partitions: Sequence[int], loads: Sequence[int] | None, roll: float) -> int:
    """Draw one of ``partitions``, those with a smaller load more often.

    Args:
        partitions: the numbers to choose from, not empty.
        loads: how much waits for each of them, or None to draw evenly. The weight of a
            partition is ``max(loads) + 1 - load`` (KIP-794).
        roll: a number in [0, 1).
    """
    if loads is None:
        return partitions[int(roll * len(partitions))]
    most = max(loads) + 1
    table = list(accumulate(most - load for load in loads))
    return partitions[bisect_right(table, int(roll * table[-1]))]


class StickyPartition:
    """The partition that keyless records of one topic go to now (KIP-794).

    The caller draws: it calls ``is_due`` before each record that begins a batch, calls
    ``switch`` with the partition drawn, and subtracts the bytes appended from ``left``.

    Attributes:
        partition: its number, -1 before the first is drawn.
        left: bytes that it can still take, whether batches are full or not.
        share: bytes after which to switch; it takes twice as many at most.
    """

    __slots__ = ("left", "partition", "share")

    def __init__(self, sticky_bytes: int) -> None:
        self.share: int = max(1, sticky_bytes)
        self.switch(-1)

    def is_due(self, size: int) -> bool:
        """Whether a record that begins a batch should go to a newly drawn partition.

        A switch waits until the batch is full, so that no small batch is left behind,
        but not for more than twice the share: then nothing is ``left``. A batch into
        which the next record does not fit counts as full.

        Args:
            size: bytes of that record.
        """
        return self.partition < 0 or self.left - size <= self.share

    def switch(self, partition: int) -> None:
        """Use this partition from now on."""
        self.partition: int = partition
        self.left: int = 2 * self.share
