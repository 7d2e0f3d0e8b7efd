"""Moving a group to other offsets while it runs, whoever owns the partitions.

The partitions are taken from their owners as in any rebalance, and given to nobody.
Only then are the offsets committed; what an old owner had in hand is finished or
refused by that time. When the partitions are given out again, their owners begin at
the offsets committed, as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import anyio

from kafkaio._runtime.clock import now
from kafkaio.consumer.commits.committer import OffsetCommitter
from kafkaio.consumer.group.member import GroupMember
from kafkaio.errors import CommitFailed, PartitionLost, RequestTimeout, RewindRefused
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Rewinder"]


class Rewinder:
    """Rewinds a group, once at a time.

    Args:
        group: our place in it.
        committer: commits for it.
    """

    def __init__(self, group: GroupMember, committer: OffsetCommitter) -> None:
        self._group = group
        self._committer = committer
        self._turn = asyncio.Lock()

    async def rewind(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], within: float
    ) -> None:
        """Commit the offsets at a moment at which nobody has the partitions.

        Args:
            offsets: offsets of the next records to read.
            within: seconds for all of it.

        Raises:
            RewindRefused: their owners cannot be asked for them.
            RequestTimeout: they did not give them up in time; nothing has changed.
            BrokerError: the commit was refused.
            OffsetStoreError: the ``offset_store`` failed.
            ClosedError: this consumer left the group.
        """
        deadline = now() + within
        with anyio.CancelScope(deadline=deadline) as waiting:
            async with self._turn:
                self._group.withhold(frozenset(offsets))
                try:
                    await self._commit(offsets, deadline)
                finally:
                    self._group.withhold(frozenset())
        if waiting.cancelled_caught:
            raise RequestTimeout(
                f"the owners of {_names(offsets)} in group {self._group.group_id!r} "
                f"did not give them up within {within:g} s"
            )

    async def _commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: float
    ) -> None:
        while True:
            await self._wait_free(frozenset(offsets))
            try:
                await self._committer.commit(offsets, timeout=deadline - now())
            except (PartitionLost, CommitFailed):
                continue  # the group moved on meanwhile, and may have given them out
            return

    async def _wait_free(self, partitions: frozenset[TopicPartition]) -> None:
        while not self._group.free.keys() >= partitions:
            if self._group.ignores_withholding:
                raise RewindRefused(self._why_refused(partitions))
            await self._group.changed.wait()

    def _why_refused(self, partitions: frozenset[TopicPartition]) -> str:
        group = f"group {self._group.group_id!r}"
        if self._group.uses_member_epoch:
            others = partitions - self._group.assignment.keys()
            return (
                f"{group} is divided by the brokers, and nobody can ask the owners of "
                f"{_names(others)} for them: rewind them where they are owned, or use "
                f'group_protocol="classic"'
            )
        return (
            f"{group} is divided by a broker, or by a member of another cluster, which "
            f"cannot be asked to withhold {_names(partitions)}"
        )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions))
