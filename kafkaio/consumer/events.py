"""The user's callbacks about partitions that come and go."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import anyio

from kafkaio._dataclass import dataclass
from kafkaio.consumer.reading import Insiders
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition

__all__ = ["Callbacks", "PartitionsCallback"]

#: Hears of partitions; may be a coroutine function, which is then awaited.
PartitionsCallback: TypeAlias = Callable[
    [AbstractSet[TopicPartition]], Awaitable[object] | object
]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The callbacks of one consumer.

    Attributes:
        on_assigned: partitions were assigned; their positions may be set by a seek.
        on_revoked: partitions are about to be given up; commits of them still count.
        on_lost: partitions are gone already.
        report: hears what a callback raised; the consumer's next call raises it.
        insiders: what the tasks are among that call back, while they do.
    """

    on_assigned: PartitionsCallback | None
    on_revoked: PartitionsCallback | None
    on_lost: PartitionsCallback | None
    report: Callable[[BaseException], None]
    insiders: Insiders

    async def assigned(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Tell of an assignment."""
        await self._call(self.on_assigned, partitions)

    async def revoked(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Tell of a revocation."""
        await self._call(self.on_revoked, partitions)

    async def lost(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Tell of a loss; without a callback of its own it counts as a revocation."""
        await self._call(self.on_lost or self.on_revoked, partitions)

    async def _call(
        self,
        callback: PartitionsCallback | None,
        partitions: AbstractSet[TopicPartition],
    ) -> None:
        if callback is None or not partitions:
            return
        try:
            with self.insiders.entered():
                outcome = callback(frozenset(partitions))
                if inspect.isawaitable(outcome):
                    await outcome
        except Exception as error:  # noqa: BLE001  (it belongs to the user's next call)
            self.report(error)
        except BaseException as error:
            task = asyncio.current_task()
            is_other = isinstance(error, anyio.get_cancelled_exc_class())
            if not is_other or task is None or task.cancelling():
                raise
            # Not this task was cancelled, but what the callback waited for.
            failure = UsageError("a callback waited for something that was cancelled")
            failure.__cause__ = error
            self.report(failure)
