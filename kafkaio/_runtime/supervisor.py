"""The owner of every background task.

The tasks are asyncio's own, and none of them runs in a task group, for two reasons:

- A pytest-asyncio fixture is torn down in another task than it was set up in, and could
  not leave a task group that the ``__aenter__`` of a client had entered.
- A task group belongs to the task that has entered it. Much of this package runs in
  callbacks of the loop, where no task is current.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from kafkaio._runtime.scopes import CancelScope
from kafkaio.errors import ClosedError

#: A function that makes the coroutine of one background task.
Child: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

#: Tasks that no supervisor owns; the loop alone would not keep them from collection.
_detached: set[asyncio.Task[None]] = set()


class Supervisor:
    """Owns every background task of one object.

    A child may end. A child that raises is a crash: ``on_crash`` is called at once, so
    that whatever waits on the object can fail with the cause, and the other children
    are cancelled. ``aclose`` leaves no task behind.

    Children are cancelled by a `CancelScope`: again and again until they end, but not
    inside a shielded scope of their own.

    Args:
        name: the object's name, seen in the names of the tasks.
        on_crash: called at most once, with the exception as the child raised it.
    """

    def __init__(self, name: str, on_crash: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_crash = on_crash
        # Runs as long as children can be started, so that the supervisor notices the
        # end of the loop (which cancels every task) also without children.
        self._root: asyncio.Task[None] | None = None
        # Every child that has not ended.
        self._tasks: dict[asyncio.Task[None], CancelScope] = {}
        # Invariant: _cancelled is set once, by the first call that ends the supervisor.
        # on_crash is called only by that call, and not if it was aclose or cancel.
        self._stopping = False
        self._cancelled = False

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<Supervisor {self._name!r} {state} | {len(self._tasks)} children>"

    @property
    def is_running(self) -> bool:
        """Whether children can be started."""
        # At the end of the loop (`asyncio.run`) all tasks are cancelled, and the loop
        # runs until these have ended. A child that began after that would be left
        # behind, perhaps before its first step.
        root = self._root
        return not (
            root is None
            or root.done()
            or root.cancelling()
            or self._stopping
            or self._cancelled
        )

    def start(self, *children: Child) -> None:
        """Start the supervisor with its first children. Needs a running loop.

        Raises:
            ClosedError: it was started before.
        """
        if self._root is not None or self._stopping:
            raise ClosedError(f"{self._name}: started before")
        loop = asyncio.get_running_loop()
        self._root = loop.create_task(_forever(loop), name=self._name)
        self._root.add_done_callback(self._root_ended)
        for child in children:
            self._launch(child, _name_of(child))

    def start_soon(self, child: Child, name: str) -> None:
        """Start one more child; it begins to run soon, not now.

        May be called in any code that the loop runs: in a task, and in a callback of
        the loop, where no task is current.

        Raises:
            ClosedError: the supervisor was not started, is closing or has crashed.
        """
        if not self.is_running:
            raise ClosedError(f"{self._name}: not running")
        self._launch(child, name)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call a function in the loop's next iteration. If it raises, that is a crash.

        Once the supervisor has ended, the function is not called.
        """
        asyncio.get_running_loop().call_soon(self._call, callback)

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
        root = self._root
        if root is None:
            return
        is_child = asyncio.current_task() in self._tasks
        try:
            if grace is not None and self._tasks and not is_child:
                await asyncio.wait([*self._tasks], timeout=grace)
        finally:
            self.cancel()
        if not is_child:
            # asyncio.wait raises nothing of the tasks that it waits for: a
            # cancellation here is one of the caller.
            await asyncio.wait([root, *self._tasks])

    def cancel(self) -> None:
        """Cancel all children, as ``aclose`` does, and wait for nothing."""
        self._stopping = True
        if not self._cancelled:
            self._end()

    def _launch(self, child: Child, name: str) -> None:
        loop = asyncio.get_running_loop()
        scope = CancelScope()
        watch = self._watch(child, name, scope)
        task = loop.create_task(watch, name=f"{self._name}: {name}")
        self._tasks[task] = scope
        task.add_done_callback(self._child_ended)

    async def _watch(self, child: Child, name: str, scope: CancelScope) -> None:
        try:
            with scope:
                await child()
        except Exception as cause:  # noqa: BLE001  (a crash, whatever it is)
            self._crash(cause)
        except BaseException:
            # Cancelled. If the supervisor did not do that, code that waits for this
            # child would never learn that it is gone.
            self._crash(ClosedError(f"{self._name}: {name} was cancelled from outside"))
            raise

    def _child_ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if task.cancelled():  # perhaps before its first step: _watch never ran
            self._crash(ClosedError(f"{task.get_name()} was cancelled from outside"))

    def _call(self, callback: Callable[[], None]) -> None:
        if self._cancelled:
            return
        try:
            callback()
        except Exception as cause:  # noqa: BLE001  (a crash, whatever it is)
            self._crash(cause)

    def _crash(self, cause: BaseException) -> None:
        if self._cancelled:
            return
        self._end()
        try:
            self._on_crash(cause)
        except Exception as error:  # noqa: BLE001  (the children must still end)
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"{self._name}: on_crash failed",
                    "exception": error,
                }
            )

    def _end(self) -> None:
        self._cancelled = True
        if self._root is not None:
            self._root.cancel()
        for scope in [*self._tasks.values()]:
            scope.cancel()

    def _root_ended(self, root: asyncio.Task[None]) -> None:
        del root
        self._crash(ClosedError(f"{self._name}: cancelled from outside"))


def start_detached(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start a task that outlives its caller, to end something in bounded time.

    The caller must retrieve its result, or asyncio reports its exception.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    _detached.add(task)
    task.add_done_callback(_detached.discard)
    return task


async def _forever(loop: asyncio.AbstractEventLoop) -> None:
    await loop.create_future()


def _name_of(child: Child) -> str:
    return getattr(child, "__qualname__", repr(child))
