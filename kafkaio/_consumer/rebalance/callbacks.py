"""The user's callbacks for partitions that are assigned, revoked or lost."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Set as AbstractSet
from typing import TypeAlias
from weakref import ref

from kafkaio._consumer.reading.exclusive import UserCode
from kafkaio._dataclass import dataclass
from kafkaio._runtime.scopes import is_foreign
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition

#: Is called with partitions; an awaitable result is awaited.
PartitionsCallback: TypeAlias = Callable[
    [AbstractSet[TopicPartition]], Awaitable[object] | object
]


class HeldCallbacks:
    """The user's callbacks, held by the public consumer.

    They may be methods of the object that holds the consumer. If the background tasks
    referred to them, neither object could be collected while the event loop runs. So
    the consumer's core gets functions that refer to this object weakly.

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
        """Calls the callback, while this object exists; None if there is none."""
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

        # It refers to neither the callback nor the consumer, so both can be collected.
        def call(partitions: AbstractSet[TopicPartition]) -> Awaitable[object] | object:
            held = weak()
            callback = held._callbacks[which] if held is not None else None
            return None if callback is None else callback(partitions)

        return call


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The callbacks of one consumer.

    Attributes:
        on_assigned: called when partitions were assigned; a seek may set positions.
        on_revoked: called before partitions are released; commits of them are still
            accepted.
        on_lost: called when partitions were lost.
        report: called with the error of a callback; the consumer's next call raises
            it.
        user_code: the tasks that run code of the user's; includes the task that calls a
            callback, while it does.
    """

    on_assigned: PartitionsCallback | None
    on_revoked: PartitionsCallback | None
    on_lost: PartitionsCallback | None
    report: Callable[[BaseException], None]
    user_code: UserCode

    async def assigned(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Call back for an assignment."""
        await self._call(self.on_assigned, partitions)

    async def revoked(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Call back for a revocation."""
        await self._call(self.on_revoked, partitions)

    async def lost(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Call back for a loss, by ``on_revoked`` if there is no ``on_lost``."""
        await self._call(self.on_lost or self.on_revoked, partitions)

    async def _call(
        self,
        callback: PartitionsCallback | None,
        partitions: AbstractSet[TopicPartition],
    ) -> None:
        if callback is None or not partitions:
            return
        # An error ends neither the membership nor the handover: the partitions are
        # released all the same, because another member waits for them.
        try:
            with self.user_code.entered():
                outcome = callback(frozenset(partitions))
                if inspect.isawaitable(outcome):
                    await outcome
        except Exception as error:  # noqa: BLE001  (the user's next call raises it)
            self.report(error)
        except BaseException as error:
            if not is_foreign(error):
                raise
            failure = UsageError("a callback waited for something that was cancelled")
            failure.__cause__ = error
            self.report(failure)
