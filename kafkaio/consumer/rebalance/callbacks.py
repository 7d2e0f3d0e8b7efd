"""The user's callbacks about partitions that come and go."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import TypeAlias
from weakref import ref

import anyio

from kafkaio._dataclass import dataclass
from kafkaio.consumer.reading.exclusive import UserCode
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition

__all__ = ["Callbacks", "HeldCallbacks", "PartitionsCallback"]

#: Hears of partitions; may be a coroutine function, which is then awaited.
PartitionsCallback: TypeAlias = Callable[
    [AbstractSet[TopicPartition]], Awaitable[object] | object
]


class HeldCallbacks:
    """The user's callbacks, as the public object holds them.

    They may be methods of the object that has the consumer. If background tasks led
    to them, neither of the two could ever be collected while the loop runs: so the
    core gets functions that lead there weakly.

    Args:
        on_assigned, on_revoked, on_lost: the callbacks, or None.
    """

    def __init__(
        self,
        on_assigned: PartitionsCallback | None,
        on_revoked: PartitionsCallback | None,
        on_lost: PartitionsCallback | None,
    ) -> None:
        self._callbacks = on_assigned, on_revoked, on_lost

    @property
    def on_assigned(self) -> PartitionsCallback | None:
        """Calls it; does nothing once this is gone. None if there is none."""
        return self._weakly(0)

    @property
    def on_revoked(self) -> PartitionsCallback | None:
        """As ``on_assigned``."""
        return self._weakly(1)

    @property
    def on_lost(self) -> PartitionsCallback | None:
        """As ``on_assigned``."""
        return self._weakly(2)

    def _weakly(self, which: int) -> PartitionsCallback | None:
        if self._callbacks[which] is None:
            return None
        weak = ref(self)

        def call(partitions: AbstractSet[TopicPartition]) -> Awaitable[object] | object:
            held = weak()
            callback = held._callbacks[which] if held is not None else None
            return None if callback is None else callback(partitions)

        return call


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
    insiders: UserCode

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
