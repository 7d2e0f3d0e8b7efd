"""The errors of all offset stores, and stores that combine others.

A consumer with an ``offset_store`` loads offsets from it when partitions are assigned,
and commits to it. The consumer remains responsible for the order of commits, for
fencing, for timeouts and for automatic commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager

from kafkaio._public import public
from kafkaio.errors import KafkaError, OffsetStoreError, UsageError
from kafkaio.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetStore,
    TopicPartition,
)


@public("kafkaio")
class KafkaOffsetStore:
    """Stands for Kafka, to which a consumer without ``offset_store`` commits.

    Made for `DualOffsetStore`. It works only as, or within, a consumer's
    ``offset_store``.
    """

    def __repr__(self) -> str:
        return "KafkaOffsetStore()"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Raise an error: only a consumer can use this store.

        Raises:
            UsageError: always.
        """
        raise UsageError("KafkaOffsetStore works as a consumer's offset_store only")

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Raise an error: only a consumer can use this store.

        Raises:
            UsageError: always.
        """
        raise UsageError("KafkaOffsetStore works as a consumer's offset_store only")


@public("kafkaio")
class DualOffsetStore:
    """Commits to two stores and reads from one, to move a group from one to the other.

    As long as every member of the group uses both, in either order, both have the
    group's offsets. So the group can change over to the new store, and back.

    Args:
        primary: the store that is committed to first, and read first.
        secondary: the store that is committed to after the primary, and read for the
            partitions of which the primary has no offset. It should be empty at first:
            old offsets in it take effect when it becomes the primary.
    """

    def __init__(self, primary: OffsetStore, secondary: OffsetStore) -> None:
        self.primary = primary
        self.secondary = secondary

    def __repr__(self) -> str:
        return f"DualOffsetStore({self.primary!r}, {self.secondary!r})"

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read from the primary, and missing offsets from the secondary.

        Raises:
            KafkaError: raised by either of them.
            OffsetStoreError: either of them raised another error, which is the cause.
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
        """Commit to both. If the secondary fails, the primary has the offsets anyway.

        Raises:
            KafkaError: raised by either of them.
            OffsetStoreError: either of them raised another error, which is the cause.
        """
        # In this order: `load` prefers the primary, whose offset is then the newer one
        # after a failure in between.
        for store in (self.primary, self.secondary):
            with store_errors(store, "write"):
                await store.commit(group, offsets)


class InKafka:
    """Kafka as an offset store, for one call of a consumer.

    Args:
        load: fetches committed offsets; None where there is none.
        commit: commits offsets.
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
        """Fetch the committed offsets."""
        del group  # the consumer's own
        # A store leaves out the partitions that have no offset.
        found = await self._load(frozenset(partitions))
        return {tp: at for tp, at in found.items() if at is not None}

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit the offsets."""
        del group
        await self._commit(offsets)


def bound(store: OffsetStore, kafka: OffsetStore) -> OffsetStore:
    """Return the store with ``kafka`` in place of each `KafkaOffsetStore`."""
    # A new object for each call: the call has a fence and a time of its own, and the
    # user's store may serve several consumers.
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
    """Raise errors within the block as errors of that store.

    Args:
        store: the store that is called.
        what: the purpose of the call: "read" or "write".

    Raises:
        OffsetStoreError: another error than a KafkaError was raised; it is the cause.
    """
    try:
        yield
    except KafkaError:  # of `InKafka`, or of the inner store of two
        raise
    except Exception as error:
        raise OffsetStoreError(
            f"{store!r} did not {what} offsets: {error!r}"
        ) from error
