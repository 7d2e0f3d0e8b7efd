"""Which partition a record goes to, when its sender names none.

A record with a key goes where its key's hash says, so that all records of a key stay
in order; the hash is murmur2 as in Kafka's Java client, over *all* partitions of the
topic, whether they have a leader now or not. A record without a key follows the
uniform sticky partitioner of KIP-794: one partition takes about a batch's worth of
bytes, then the next is drawn, partitions with short queues more often than ones with
long queues, so that a slow broker gets less.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from struct import unpack

__all__ = ["StickyPartition", "draw", "key_partition", "murmur2"]

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_LONGEST_CACHED_KEY = 64


def murmur2(data: bytes) -> int:
    """Hash bytes as Java's ``Utils.murmur2`` does; the result is a signed 32-bit int.

    The arithmetic is that of the reference: everything modulo 2**32, and bytes of the
    tail are unsigned (Java masks each with 0xff).
    """
    length = len(data)
    h = _SEED ^ (length & _MASK)
    words, tail = divmod(length, 4)
    for k in unpack(f"<{words}I", data[: words * 4]) if words else ():
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ (((k ^ (k >> 24)) * _M) & _MASK)
    if tail:
        h = ((h ^ int.from_bytes(data[words * 4 :], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    h ^= h >> 15
    return h - 0x100000000 if h & 0x80000000 else h


# Real keys repeat, and a hit costs a tenth of a hash; the cap keeps it bounded.
_cached_murmur2 = lru_cache(maxsize=4096)(murmur2)


def key_partition(key: bytes, count: int) -> int:
    """Return the partition of a key among ``count`` partitions, as Java computes it.

    An empty key is a key. The sign bit is cleared rather than the sign changed.
    """
    if len(key) <= _LONGEST_CACHED_KEY:
        return (_cached_murmur2(key) & 0x7FFFFFFF) % count
    return (murmur2(key) & 0x7FFFFFFF) % count


def draw(partitions: Sequence[int], loads: Sequence[int] | None, roll: float) -> int:
    """Draw one of ``partitions``, those with a smaller load more often.

    Args:
        partitions: the numbers to choose from, not empty.
        loads: how many batches wait for each of them, or None to draw evenly. The
            weight of a partition is ``max(loads) + 1 - load`` (KIP-794).
        roll: a number in [0, 1).
    """
    if loads is None:
        return partitions[int(roll * len(partitions))]
    most = max(loads) + 1
    table = list(accumulate(most - load for load in loads))
    return partitions[bisect_right(table, int(roll * table[-1]))]


class StickyPartition:
    """The partition that keyless records of one topic go to now (KIP-794).

    The caller draws: it asks ``is_due`` before each record, calls ``switch`` with the
    partition drawn, and ``took`` with the bytes appended.
    """

    __slots__ = ("_sticky_bytes", "_taken", "partition")

    def __init__(self, sticky_bytes: int) -> None:
        self._sticky_bytes = max(1, sticky_bytes)
        self._taken = 0
        self.partition = -1

    def is_due(self, *, is_last_batch_full: bool) -> bool:
        """Whether the next record should go to a partition drawn anew.

        A switch waits for the batch to fill, so that it leaves no small batch behind,
        yet not for longer than twice the share.
        """
        taken = self._taken
        if self.partition < 0 or taken >= 2 * self._sticky_bytes:
            return True
        return is_last_batch_full and taken >= self._sticky_bytes

    def switch(self, partition: int) -> None:
        """Stick to this partition from now on."""
        self.partition = partition
        self._taken = 0

    def took(self, size: int) -> None:
        """Count bytes that a keyless record brought to the current partition."""
        self._taken += size
