"""The iteration order of Java's HashMap.

In a few places Kafka's result depends on it, such as the choice between protocols with
equal votes. To answer as Kafka does, the embedded broker has to use the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar
from uuid import UUID

from kafkaio.testing._broker.cluster import java_hash

T = TypeVar("T")

_SMALLEST = 16


def text_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number."""
    return java_hash(text) & 0xFFFFFFFF


def uuid_hash(uuid: UUID) -> int:
    """Return the hash code of Kafka's ``Uuid`` as an unsigned number."""
    both = uuid.int >> 64 ^ uuid.int & (1 << 64) - 1
    return both >> 32 ^ both & 0xFFFFFFFF


def java_order(items: Collection[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return items in the order in which a ``HashMap`` iterates over them as keys.

    Items in the same bucket keep their order, which is the order of insertion.
    """
    size = _SMALLEST
    while len(items) > size * 3 // 4:
        size *= 2

    def bucket(item: T) -> int:
        code = hash_of(item)
        return (code ^ code >> 16) & (size - 1)

    return sorted(items, key=bucket)
