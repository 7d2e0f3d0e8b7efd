"""Offsets kept elsewhere than in Kafka, and in two places at once.

A consumer asks its store when partitions are assigned, and tells it what is committed;
order, fences, time-outs and automatic commits stay the consumer's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager

from kafkaio.errors import KafkaError, OffsetStoreError, UsageError
from kafkaio.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetStore,
    TopicPartition,
)

__all__ = ["DualOffsetStore", "InKafka", "KafkaOffsetStore", "bound", "store_errors"]


class KafkaOffsetStore:
    """The group's coordinator, where a consumer without ``offset_store`` commits.

    It stands for that in a `DualOffsetStore`, and works in a consumer only.
    """

    def __repr__(self) -> str:
        return "KafkaOffsetStore()"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Works in a consumer only.

        Raises:
            UsageError: always.
        """
        raise UsageError("KafkaOffsetStore works as a consumer's offset_store only")

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Works in a consumer only.

        Raises:
            UsageError: always.
        """
        raise UsageError("KafkaOffsetStore works as a consumer's offset_store only")


class DualOffsetStore:
    """Commits to two stores, and reads from one: the way from one to another.

    While every member of the group has both, in either order, both know where the
    group is, so that it can go on to the new one and back.

    Args:
        primary: committed to first, and asked first.
        secondary: committed to when the primary has it, and asked for what the primary
            has no offset for. It should be empty at first: what is left in it from
            times before counts as soon as it becomes the primary.
    """

    def __init__(self, primary: OffsetStore, secondary: OffsetStore) -> None:
        self.primary = primary
        self.secondary = secondary

    def __repr__(self) -> str:
        return f"DualOffsetStore({self.primary!r}, {self.secondary!r})"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What the primary has, and what only the secondary has.

        Raises:
            Exception: what either of them raises.
        """
        with store_errors(self.primary, "read"):
            found = dict(await self.primary.load(group, partitions))
        missing = [tp for tp in partitions if found.get(tp) is None]
        if missing:
            with store_errors(self.secondary, "read"):
                found |= await self.secondary.load(group, missing)
        return found

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit to both; if the secondary fails, the primary has it all the same.

        Raises:
            Exception: what either of them raises.
        """
        for store in (self.primary, self.secondary):
            with store_errors(store, "write"):
                await store.commit(group, offsets)


class InKafka:
    """The coordinator as a store, within one call of a consumer.

    Args:
        load: looks offsets up; None where there is none.
        commit: commits them.
    """

    def __init__(
        self,
        load: Callable[
            [frozenset[TopicPartition]],
            Awaitable[Mapping[TopicPartition, OffsetAndMetadata | None]],
        ],
        commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata]], Awaitable[None]],
    ) -> None:
        self._load = load
        self._commit = commit

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What the group has committed."""
        del group  # the call's own
        found = await self._load(frozenset(partitions))
        return {tp: at for tp, at in found.items() if at is not None}

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit for the group."""
        del group
        await self._commit(offsets)


def bound(store: OffsetStore, kafka: OffsetStore) -> OffsetStore:
    """The store with ``kafka`` wherever Kafka is meant."""
    match store:
        case KafkaOffsetStore():
            return kafka
        case DualOffsetStore():
            return DualOffsetStore(
                bound(store.primary, kafka), bound(store.secondary, kafka)
            )
        case _:
            return store


@contextmanager
def store_errors(store: OffsetStore, what: str) -> Generator[None]:
    """Say which store failed.

    Raises:
        OffsetStoreError: anything but a `KafkaError` was raised.
    """
    try:
        yield
    except KafkaError:
        raise
    except Exception as error:
        raise OffsetStoreError(
            f"{store!r} did not {what} offsets: {error!r}"
        ) from error
