"""What divides a consumer's records among several tasks, as the reader sees it.

Read alone, a record is finished when the next is asked for. With several tasks at work
that says nothing, so whoever divides the records tells what is finished, and lets go
of each partition that the group asks back when its own work on it is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core

__all__ = ["Divider", "drained", "let_go", "shared"]

#: How much of the time to close may be spent on what is still worked on.
_DRAINING: Final = 0.8


class Divider(Protocol):
    """Hears what happens to partitions. All but `drain` is synchronous."""

    @property
    def has_order(self) -> bool:
        """Whether a record that is done says that those before it are."""
        ...

    def assigned(self, tp: TopicPartition) -> None:
        """A partition was assigned; a new assignment, if it was here before."""

    def revoke_requested(self, tp: TopicPartition) -> None:
        """A partition is to be given back: call `let_go` when it may go."""

    def may_go(self, tp: TopicPartition) -> bool:
        """Whether a partition that is to be given back may go."""
        ...

    def unassigned(self, tp: TopicPartition) -> None:
        """A partition is gone, as was asked for or not."""

    def sync(self) -> None:
        """Tell the ledger what is finished: somebody is about to look."""

    def committed(self) -> None:
        """Something was committed."""

    def shows_life(self) -> bool:
        """Whether the user's code went on, or had nothing to do, since last asked."""
        ...

    def begin_draining(self) -> None:
        """The consumer closes: take nothing more."""

    async def drain(self) -> None:
        """Wait for what was begun before `begin_draining`."""

    def left(self, task: asyncio.Task[object] | None) -> None:
        """A task closes the consumer: nobody waits for what it is in itself."""

    def stop(self) -> None:
        """The consumer is closed: no time is left for what was begun."""


def let_go(core: Core, tp: TopicPartition) -> None:
    """Give a partition back that the group asked for, unless the user holds it."""
    if core.member is not None:
        core.member.release(frozenset({tp}))


async def drained(divider: Divider | None, within: float) -> None:
    """Let what several tasks work on be finished, as far as time allows.

    Args:
        divider: who divides the records; None where nobody does.
        within: seconds for this, and for telling the group afterwards.
    """
    if divider is not None:
        try:
            with anyio.move_on_after(_DRAINING * within):
                await divider.drain()
        finally:
            divider.stop()


@contextmanager
def shared(core: Core, divider: Divider) -> Iterator[None]:
    """Let the records be divided; nobody else may read meanwhile.

    What was handed out before counts as finished. What was handed out meanwhile and
    is not finished at the end is read again.

    Raises:
        UsageError: another task reads already.
    """
    with core.reading:
        reader = core.reader
        core.step(polls=False)
        reader.set_aside()
        reader.divider = divider
        for tp in reader.positions:
            divider.assigned(tp)
        try:
            yield
        finally:
            reader.sync()
            reader.divider = None
            reader.take_back()
