"""A bug put in on purpose, for whoever has to find it."""

from __future__ import annotations

import anyio
import pytest

from kafkaio._consumer.core import Core
from kafkaio._consumer.rebalance.assignment import PartitionAssignment
from kafkaio._machines.membership.fence import Fence
from kafkaio.types import TopicPartition


def a_commit_after_giving_up(patch: pytest.MonkeyPatch) -> None:
    """The consumer gives partitions up, and commits them when it gets round to it."""

    async def revoking(
        self: PartitionAssignment, partitions: frozenset[TopicPartition]
    ) -> None:
        core = self.consumer
        assert isinstance(core, Core)
        due = core.reader.ledger.due(partitions)
        await self.callbacks.revoked(partitions & set(core.reader.positions))
        self.drop(partitions)

        async def late() -> None:
            await anyio.sleep(0.5)
            await core.group_committer().commit(due.offsets, timeout=5)

        if due.offsets:
            core._supervisor.start_soon(late, "late")

    patch.setattr(PartitionAssignment, "revoking", revoking)
    patch.setattr(Fence, "lost", lambda *_: None)
