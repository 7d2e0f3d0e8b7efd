"""The port of the objects that divide a consumer's records among tasks.

If one task reads alone, a record is finished when the next one is asked for. With
several tasks that rule does not hold. So the object that divides the records among them
(`Runner` or `Lanes` of `kafkaio._consumer.parallel`) notes which are finished. If the
group requests a partition back, it releases the partition when its work there is over.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from kafkaio.types import TopicPartition


class DividerPort(Protocol):
    """Divides records, and is notified of assignments. Only `drain` is asynchronous."""

    @property
    def has_order(self) -> bool:
        """Whether a finished record implies that all records before it are finished."""
        ...

    def assigned(self, tp: TopicPartition) -> None:
        """Begin with a partition, anew if it was assigned before."""

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Finish the work on a partition, then release it: the group wants it back."""

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether the work on a partition that was requested back is over."""
        ...

    def unassigned(self, tp: TopicPartition) -> None:
        """End with a partition that is not assigned any more."""

    def sync(self) -> None:
        """Note finished records in the ledger, before it is read."""

    def committed(self) -> None:
        """Note that offsets were committed."""

    def shows_life(self) -> bool:
        """Whether the user's code made progress or was idle since the last call."""
        ...

    def begin_draining(self) -> None:
        """Take no more records: the consumer closes."""

    async def drain(self) -> None:
        """Wait for the work that was begun before `begin_draining`."""

    def leave(self, task: asyncio.Task[object] | None) -> None:
        """Do not wait for the work of a task that closes the consumer itself."""

    def stop(self) -> None:
        """End at once: no time is left for the work that was begun."""
