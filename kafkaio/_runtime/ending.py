"""How an object ends whose ``close()`` can be cancelled.

`asyncio.Task.cancel` reaches a task wherever it waits: an anyio shield holds off
cancelled scopes, and not that. So what closing has to do runs in a task of its own.
The callers of ``close()`` wait for that task, and a cancelled caller stops nothing
but its own waiting.
"""

from __future__ import annotations

import asyncio

import anyio

from kafkaio._runtime.supervisor import Child, TaskScope, start_detached

__all__ = ["Ending"]


class Ending:
    """The end of one object, begun once and waited for by any number of callers.

    It has two parts. The first is cut short when the caller that began it is
    cancelled; the second always runs. A task of this that is cancelled from outside,
    for example with every other task of the loop, still runs the second part, and the
    next caller starts that part again in case it was cut short, too.

    Args:
        name: of the task.
    """

    __slots__ = ("_end", "_name", "_task")

    def __init__(self, name: str) -> None:
        self._name = name
        self._end: Child | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self, part: Child | None, end: Child) -> None:
        """Begin, and wait until it is done.

        If the call is cancelled, ``part`` is cut short, and ``end`` is waited for. If
        it is cancelled again, it returns at once, and ``end`` goes on.

        Args:
            part: what can be left out, such as waiting for others; None for nothing.
            end: what has to be done in any case; it must take a bounded time, and may
                be called again.

        Raises:
            Exception: what ``part`` or ``end`` raised.
        """
        self._end = end
        grace = TaskScope()

        async def run() -> None:
            try:
                if part is not None:
                    with grace:
                        await part()
            finally:
                await end()

        self._task = start_detached(run(), self._name)
        try:
            await self.wait()
        except BaseException:
            grace.cancel()
            with anyio.CancelScope(shield=True):
                await _ended(self._task)
            raise

    async def wait(self) -> None:
        """Wait until it is done; at once if it was never begun, or by its own task.

        If the call is cancelled, nothing changes.

        Raises:
            Exception: what it raised.
        """
        while (task := self._task) is not None and task is not asyncio.current_task():
            await _ended(task)
            if not task.cancelled():
                task.result()
                return
            if self._task is task:
                assert self._end is not None
                self._task = start_detached(self._end(), self._name)


async def _ended(task: asyncio.Task[None]) -> None:
    if not task.done():  # else its loop may be another one, and closed
        await asyncio.wait([task])
