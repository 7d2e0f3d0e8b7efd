"""What offset stores have in common whose calls block: they are made in threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import anyio.to_thread

from kafkaio.consumer.stores.last_word import LastWord
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["BlockingStore"]


class BlockingStore(ABC):
    """An `OffsetStore` that reads and writes in threads."""

    def __init__(self) -> None:
        self._last_word = LastWord(self._commit)

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Read what there is.

        Raises:
            OffsetStoreError: something else stands there.
            Exception: what reading raises.
        """
        chosen = tuple(partitions)
        return await anyio.to_thread.run_sync(self._load, group.group_id, chosen)

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Write the offsets.

        If the call is cancelled, they may still be written, but never over what a
        later call wrote.

        Raises:
            Exception: what writing raises.
        """
        await self._last_word.commit(group.group_id, offsets)

    @abstractmethod
    def _load(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]: ...

    @abstractmethod
    def _commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None: ...
