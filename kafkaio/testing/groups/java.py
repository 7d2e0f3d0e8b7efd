"""The order of Java's hash maps, which decides where Kafka leaves a choice open."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar
from uuid import UUID

from kafkaio.testing.broker.cluster import java_hash

__all__ = ["java_order", "text_hash", "uuid_hash"]

T = TypeVar("T")

_SMALLEST = 16


def text_hash(text: str) -> int:
    """Return ``String.hashCode``, without a sign."""
    return java_hash(text) & 0xFFFFFFFF


def uuid_hash(uuid: UUID) -> int:
    """Return the hash code of Kafka's ``Uuid``, without a sign."""
    both = uuid.int >> 64 ^ uuid.int & (1 << 64) - 1
    return both >> 32 ^ both & 0xFFFFFFFF


def java_order(items: Collection[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return items as a ``HashMap`` with them as keys goes through them.

    Those that share a bucket keep their order, as if they had been put in so.
    """
    size = _SMALLEST
    while len(items) > size * 3 // 4:
        size *= 2

    def bucket(item: T) -> int:
        code = hash_of(item)
        return (code ^ code >> 16) & (size - 1)

    return sorted(items, key=bucket)
