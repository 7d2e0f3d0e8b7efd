"""The partitioner of aiokafka, and its hash function."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["DefaultPartitioner", "murmur2"]

_MASK = 0xFFFFFFFF


class DefaultPartitioner:
    """Chooses the partition of a record by its key, as Java's client does."""

    @classmethod
    def __call__(
        cls, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
    ) -> int:
        """Return a partition: by the hash of the key, or any that is available.

        Args:
            key: the key; None for a record without one.
            all_partitions: the partitions of the topic, ascending.
            available: those that have a leader.
        """
        if key is None:
            # Records without a key are spread; nothing depends on the dice.
            return random.choice(available or all_partitions)  # noqa: S311
        return all_partitions[(murmur2(key) & 0x7FFFFFFF) % len(all_partitions)]


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """Return the hash of bytes by which Kafka's clients choose partitions.

    It is MurmurHash2 with the seed of Java's client: a number of 32 bits, unsigned.
    """
    length = len(data)
    mixed = 0x9747B28C ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little")
        part = part * 0x5BD1E995 & _MASK
        part = (part ^ part >> 24) * 0x5BD1E995 & _MASK
        mixed = (mixed * 0x5BD1E995 & _MASK) ^ part
    if whole < length:
        mixed ^= int.from_bytes(data[whole:], "little")
        mixed = mixed * 0x5BD1E995 & _MASK
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & _MASK
    return mixed ^ mixed >> 15
