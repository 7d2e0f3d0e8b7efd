"""Interfaces between the parts of a consumer that more than one part uses.

A part that alone needs something of another declares that beside itself.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from kafkaio.types import TopicPartition

__all__ = ["Divider"]


class Divider(Protocol):
    """Divides the records of a consumer among several tasks (`Consumer.run`, lanes).

    If one task reads alone, a record is finished when the task asks for the next one.
    With several tasks that says nothing. So the divider decides what is finished, and
    releases each partition whose revocation is requested when its own work on it has
    ended. All methods but `drain` are synchronous.
    """

    @property
    def has_order(self) -> bool:
        """Whether a finished record implies that those before it are finished."""
        ...

    def assigned(self, tp: TopicPartition) -> None:
        """Note a new assignment of a partition, which may have been here before."""

    def revoke_requested(self, tp: TopicPartition) -> None:
        """Note that the revocation of a partition is requested."""

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether a partition with a requested revocation can be released."""
        ...

    def unassigned(self, tp: TopicPartition) -> None:
        """Note that a partition was revoked or lost."""

    def sync(self) -> None:
        """Bring the offset ledger up to date with what is finished."""

    def committed(self) -> None:
        """Note that offsets were committed."""

    def shows_life(self) -> bool:
        """Whether the user's code made progress, or had no work, since the last call.

        This resets ``max_poll_interval_ms``.
        """
        ...

    def begin_draining(self) -> None:
        """Hand out no more records: the consumer closes."""

    async def drain(self) -> None:
        """Wait until the work that began before `begin_draining` has ended."""

    def left(self, task: asyncio.Task[object] | None) -> None:
        """Do not wait for the work of a task: it closes the consumer itself."""

    def stop(self) -> None:
        """End the work that is left: the time for `drain` is over."""
