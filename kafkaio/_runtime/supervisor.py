"""The owner of every background task.

The task group lives in a task of the supervisor's own. Would it be entered by
``__aenter__`` of a client, then a pytest-asyncio fixture, which is torn down in
another task than it was set up in, could not leave it; and a crash would reach the
user as an exception group around a cancelled block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import anyio
import anyio.abc

from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import ClosedError

__all__ = ["Child", "Supervisor"]

#: A function that makes the coroutine of one background task.
Child: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Supervisor:
    """Owns every background task of one object.

    A child that ends is forgotten. A child that raises is a crash: ``on_crash`` is
    told at once, so that whatever waits on the object can fail with the cause, and
    the other children are cancelled. ``aclose`` leaves no task behind.

    Args:
        name: the object's name, seen in the names of the tasks.
        on_crash: called at most once, with the exception as the child raised it.
    """

    def __init__(self, name: str, on_crash: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_crash = on_crash
        self._host: asyncio.Task[None] | None = None
        self._group: anyio.abc.TaskGroup | None = None
        # Children that were handed in before the host task had its first turn.
        self._early: list[tuple[Child, str]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        # Children started and not ended; more than _tasks, which had a first turn.
        self._alive = 0
        self._on_idle: Wakeup | None = None
        # Invariant: _cancelled is set once, by whoever ends the supervisor first,
        # and on_crash is called by the one who set it, unless that was aclose.
        self._stopping = False
        self._cancelled = False

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<Supervisor {self._name!r} {state} | {self._alive} children>"

    @property
    def is_running(self) -> bool:
        """Whether children can be started."""
        return not (
            self._host is None or self._host.done() or self._stopping or self._cancelled
        )

    def start(self, *children: Child) -> None:
        """Start the supervisor with its first children. Needs a running loop.

        Raises:
            ClosedError: it was started before.
        """
        if self._host is not None or self._stopping:
            raise ClosedError(f"{self._name}: started before")
        self._early.extend((child, _name_of(child)) for child in children)
        self._host = asyncio.create_task(self._run(), name=self._name)
        self._host.add_done_callback(self._host_ended)

    def start_soon(self, child: Child, name: str) -> None:
        """Start one more child; it gets its first turn soon, not now.

        Raises:
            ClosedError: the supervisor was not started, is closing or has crashed.
        """
        if not self.is_running:
            raise ClosedError(f"{self._name}: not running")
        if self._group is None:
            self._early.append((child, name))
        else:
            self._launch(self._group, child, name)

    async def aclose(self, grace: float | None = None) -> None:
        """End all children and wait until they have ended. May be called again.

        If the call is cancelled, the children are cancelled and end by themselves.
        A child that closes its own supervisor only asks for the end, because it
        cannot wait for itself.

        Args:
            grace: seconds in which children may end by themselves; without it they
                are cancelled at once.
        """
        self._stopping = True
        host = self._host
        if host is None or host.done():
            return
        try:
            if grace is not None and asyncio.current_task() not in self._tasks:
                with anyio.move_on_after(grace):
                    await self._idle()
        finally:
            self._cancel()
        if asyncio.current_task() not in self._tasks:
            await _ended(host)

    async def _run(self) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            for child, name in self._early:
                self._launch(group, child, name)
            self._early.clear()
            # The group has no work of its own and stays open without children, until
            # it is cancelled: by aclose, by a crash, or with the loop.
            if not self._cancelled:
                await anyio.sleep_forever()
            group.cancel_scope.cancel()

    def _launch(self, group: anyio.abc.TaskGroup, child: Child, name: str) -> None:
        self._alive += 1
        group.start_soon(self._watch, child, name, name=f"{self._name}: {name}")

    async def _watch(self, child: Child, name: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await child()
        except Exception as cause:  # noqa: BLE001  (a crash, whatever it is)
            self._crash(cause)
        except BaseException:
            # Cancelled. If not by us, then nobody who waits for this child would
            # ever learn that it is gone.
            self._crash(ClosedError(f"{self._name}: {name} was cancelled from outside"))
            raise
        finally:
            self._tasks.discard(task)
            self._alive -= 1
            if self._alive == 0 and self._on_idle is not None:
                self._on_idle.notify()

    async def _idle(self) -> None:
        """Wait until no child is left."""
        self._on_idle = Wakeup()
        while self._alive or self._early:
            await self._on_idle.wait()

    def _crash(self, cause: BaseException) -> None:
        if self._cancelled:
            return
        self._cancel()
        try:
            self._on_crash(cause)
        except Exception as error:  # noqa: BLE001  (the children must still end)
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"{self._name}: on_crash failed",
                    "exception": error,
                }
            )

    def _cancel(self) -> None:
        self._cancelled = True
        if self._group is not None:
            self._group.cancel_scope.cancel()

    def _host_ended(self, host: asyncio.Task[None]) -> None:
        if host.cancelled() or host.exception() is not None:
            self._crash(ClosedError(f"{self._name}: cancelled from outside"))


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait for a task's end without sharing its fate: our cancellation stays ours."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(_: asyncio.Task[None]) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(tell)
    try:
        await ended
    finally:
        task.remove_done_callback(tell)


def _name_of(child: Child) -> str:
    return getattr(child, "__qualname__", repr(child))
