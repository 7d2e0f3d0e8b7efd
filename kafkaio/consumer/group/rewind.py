"""Moves a group to other offsets while it runs, whichever members own the partitions.

The partitions are *withheld*: as in any rebalance their owners release them, and no
member gets them. When no member owns them (they are *free*), the offsets are committed.
By then the work of the old owners is finished, and a commit of theirs is refused. When
the partitions are assigned again, their new owners begin at the committed offsets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

import anyio

from kafkaio._runtime.clock import now
from kafkaio.consumer.group.member import GroupMember
from kafkaio.errors import CommitFailed, PartitionLost, RequestTimeout, RewindRefused
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Rewinder"]


class Committer(Protocol):
    """Commits the offsets of the group."""

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float,  # noqa: ASYNC109
    ) -> None:
        """Commit offsets, within ``timeout`` seconds."""
        ...


class Rewinder:
    """Rewinds a group; one rewind at a time.

    Args:
        member: this consumer's member of the group.
        committer: commits the offsets of the group.
    """

    def __init__(self, member: GroupMember, committer: Committer) -> None:
        self._member = member
        self._committer = committer
        self._lock = asyncio.Lock()

    async def rewind(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], within: float
    ) -> None:
        """Commit the offsets while no member owns the partitions.

        Args:
            offsets: offsets of the next records to read.
            within: seconds for all of it, the wait for an earlier rewind included.

        Raises:
            RewindRefused: the group's assignor cannot withhold the partitions.
            RequestTimeout: the owners did not release them in time; nothing changed.
            BrokerError: the commit was refused.
            OffsetStoreError: the ``offset_store`` failed.
            ClosedError: this consumer has left the group.
        """
        deadline = now() + within
        with anyio.CancelScope(deadline=deadline) as waiting:
            async with self._lock:
                self._member.withhold(frozenset(offsets))
                try:
                    await self._commit(offsets, deadline)
                finally:
                    self._member.withhold(frozenset())
        if waiting.cancelled_caught:
            raise RequestTimeout(
                f"the owners of {_names(offsets)} in group {self._member.group_id!r} "
                f"did not release them within {within:g} s"
            )

    async def _commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: float
    ) -> None:
        while True:
            await self._wait_free(frozenset(offsets))
            try:
                await self._committer.commit(offsets, timeout=deadline - now())
            except (PartitionLost, CommitFailed):
                # The group began another generation meanwhile, in which a member may
                # own the partitions.
                continue
            return

    async def _wait_free(self, partitions: frozenset[TopicPartition]) -> None:
        while not self._member.free.keys() >= partitions:
            if self._member.ignores_withholding:
                raise RewindRefused(self._why_refused(partitions))
            await self._member.changed.wait()

    def _why_refused(self, partitions: frozenset[TopicPartition]) -> str:
        group = f"group {self._member.group_id!r}"
        if self._member.uses_member_epoch:
            others = partitions - self._member.assignment.keys()
            return (
                f"the partitions of {group} are assigned by the brokers, which cannot "
                f"withhold {_names(others)}: rewind each on the member that owns it, "
                f'or use group_protocol="classic"'
            )
        return (
            f"the partitions of {group} are assigned by a broker, or by a member with "
            f"another client library, which cannot withhold {_names(partitions)}"
        )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions))
