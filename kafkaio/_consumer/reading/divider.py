"""What divides a consumer's records among several tasks, as the reader sees it.

Where one task reads alone, a record is finished when the next one is asked for. That
says nothing while several tasks are at work. So whatever divides the records among
them tells what is finished, and releases each partition that the group requests back
when its own work on the partition is over.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from kafkaio.types import TopicPartition


class DividerPort(Protocol):
    """Learns what happens to partitions. All methods but `drain` are synchronous."""

    @property
    def has_order(self) -> bool:
        """Whether a finished record means that all before it are finished, too."""
        ...

    def assigned(self, tp: TopicPartition) -> None:
        """Begin with a partition, anew if it was assigned before."""

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Finish the work on a partition, then release it: the group wants it back."""

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether there is no work on a partition that was requested back."""
        ...

    def unassigned(self, tp: TopicPartition) -> None:
        """End with a partition that is not assigned any more, released or lost."""

    def sync(self) -> None:
        """Tell the ledger what is finished: it is about to be read."""

    def committed(self) -> None:
        """Note that offsets were committed."""

    def shows_life(self) -> bool:
        """Whether the user's code went on or was idle since the last call."""
        ...

    def begin_draining(self) -> None:
        """Take no more records: the consumer closes."""

    async def drain(self) -> None:
        """Wait for the work that was begun before `begin_draining`."""

    def leave(self, task: asyncio.Task[object] | None) -> None:
        """Wait no more for what this task is in: it closes the consumer."""

    def stop(self) -> None:
        """End at once: no time is left for the work that was begun."""
