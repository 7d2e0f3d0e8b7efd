"""The worker tasks of the ``run`` of both consumers.

A worker lives as long as there is work, not for one record: a record costs the
handler's own coroutine and nothing else. Each worker has a cancel scope, by which the
handler is cancelled whose record belongs to somebody else by now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from kafkaio._consumer.reading.exclusive import UserCode
from kafkaio._generic import Generic
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup

ItemT = TypeVar("ItemT")


class Worker(Generic[ItemT]):
    """One worker task.

    Attributes:
        item: what it works on; None while it has nothing.
        scope: cancels its handler. After that there is a new one.
    """

    __slots__ = ("item", "scope", "wakeup")

    def __init__(self) -> None:
        self.item: ItemT | None = None
        self.scope: CancelScope = CancelScope()
        self.wakeup: Wakeup = Wakeup()


class Workers(Generic[ItemT]):
    """The workers of one call of ``run``.

    Args:
        most: how many there may be.
        has_work: whether there is something to begin.
        work: works until there is nothing to begin, or the scope of the worker is
            cancelled.
        user_code: the tasks that run handlers.

    Attributes:
        is_waking: whether a worker was woken that has not run yet. It wakes the next
            one, so that a burst of records does not wake all workers at once.
    """

    def __init__(
        self,
        most: int,
        has_work: Callable[[], object],
        work: Callable[[Worker[ItemT]], Awaitable[None]],
        user_code: UserCode,
    ) -> None:
        self._most = most
        self._has_work = has_work
        self._take = work
        self._user_code = user_code
        self._workers: list[Worker[ItemT]] = []
        self._idle: list[Worker[ItemT]] = []
        self._group: TaskGroup | None = None
        self.is_waking: bool = False

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[Worker[ItemT]]:
        return iter(self._workers)

    def begin(self, group: TaskGroup) -> None:
        """Let workers run in a group."""
        self._group = group

    def end(self) -> None:
        """Forget the workers: their group has ended."""
        self._group = None
        self._workers.clear()
        self._idle.clear()
        self.is_waking = False

    def wake(self) -> None:
        """Wake a worker, or start one, if there is work and none was woken."""
        if self.is_waking or self._group is None or not self._has_work():
            return
        if self._idle:
            self._idle.pop().wakeup.notify()
        elif len(self._workers) < self._most:
            worker = Worker[ItemT]()
            self._workers.append(worker)
            number = len(self._workers)
            self._group.start_soon(self._run, worker, name=f"kafkaio run {number}")
        else:
            return
        self.is_waking = True

    async def _run(self, worker: Worker[ItemT]) -> None:
        self.is_waking = False
        with self._user_code.entered():
            await self._serve(worker)

    async def _serve(self, worker: Worker[ItemT]) -> None:
        while True:
            with worker.scope as scope:
                while not scope.cancel_called:
                    await self._take(worker)
                    if not scope.cancel_called:
                        await self._rest(worker)
            # What it worked on was lost; there is other work.
            worker.scope = CancelScope()

    async def _rest(self, worker: Worker[ItemT]) -> None:
        self._idle.append(worker)
        try:
            await worker.wakeup.wait()
        finally:
            if worker in self._idle:
                self._idle.remove(worker)
        self.is_waking = False
