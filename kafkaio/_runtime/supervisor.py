"""The owner of every background task.

The tasks are asyncio's own, and none of them lives in a task group. A task group that
is entered by ``__aenter__`` of a client could not be left by a pytest-asyncio fixture,
which is torn down in another task than it was set up in. And anyio's task groups start
a task only where another one is current, but much of this package runs in callbacks of
the loop, where none is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio

from kafkaio.errors import ClosedError

__all__ = ["Child", "Supervisor", "TaskScope", "start_detached"]

#: A function that makes the coroutine of one background task.
Child: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

#: Tasks that no supervisor owns; the loop alone would not keep them from collection.
_detached: set[asyncio.Task[None]] = set()


class TaskScope:
    """A cancel scope that may be made and cancelled wherever the loop runs.

    anyio's own is made in a task; where another asynchronous library is installed, it
    cannot be made in a callback. This one makes it when a task enters it.
    """

    __slots__ = ("_is_cancelled", "_scope")

    def __init__(self) -> None:
        self._is_cancelled = False
        self._scope: anyio.CancelScope | None = None

    def cancel(self) -> None:
        """Cancel what runs in the scope, or will run in it. May be repeated."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def __enter__(self) -> Self:
        scope = anyio.CancelScope()
        if self._is_cancelled:
            scope.cancel()
        scope.__enter__()
        self._scope = scope
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        assert self._scope is not None
        return self._scope.__exit__(kind, error, trace)


class Supervisor:
    """Owns every background task of one object.

    A child that ends is forgotten. A child that raises is a crash: ``on_crash`` is
    called at once, so that whatever waits on the object can fail with the cause, and
    the other children are cancelled. ``aclose`` leaves no task behind.

    Children are cancelled as anyio cancels a scope: again and again until they end,
    but not inside a shielded scope of their own.

    Args:
        name: the object's name, seen in the names of the tasks.
        on_crash: called at most once, with the exception as the child raised it.
    """

    def __init__(self, name: str, on_crash: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_crash = on_crash
        # Lives as long as children can be started, so that the end of the loop is
        # noticed without children, too.
        self._host: asyncio.Task[None] | None = None
        # Every child that has not ended.
        self._tasks: dict[asyncio.Task[None], TaskScope] = {}
        # Invariant: _cancelled is set once, by whoever ends the supervisor first,
        # and on_crash is called by the one who set it, unless that was aclose.
        self._stopping = False
        self._cancelled = False

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<Supervisor {self._name!r} {state} | {len(self._tasks)} children>"

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
        loop = asyncio.get_running_loop()
        self._host = loop.create_task(_forever(loop), name=self._name)
        self._host.add_done_callback(self._host_ended)
        for child in children:
            self._launch(child, _name_of(child))

    def start_soon(self, child: Child, name: str) -> None:
        """Start one more child; it gets its first turn soon, not now.

        May be called wherever the loop runs: in a task, and in any of the loop's
        callbacks, where no task is current.

        Raises:
            ClosedError: the supervisor was not started, is closing or has crashed.
        """
        if not self.is_running:
            raise ClosedError(f"{self._name}: not running")
        self._launch(child, name)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call a function in the loop's next turn. If it raises, that is a crash.

        After the end of the supervisor it is not called.
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
        host = self._host
        if host is None:
            return
        is_child = asyncio.current_task() in self._tasks
        try:
            if grace is not None and self._tasks and not is_child:
                await asyncio.wait([*self._tasks], timeout=grace)
        finally:
            self.cancel()
        if not is_child:
            # asyncio.wait does not share the fate of the tasks that it waits for: a
            # cancellation that it raises is the caller's own.
            await asyncio.wait([host, *self._tasks])

    def cancel(self) -> None:
        """Cancel all children, as ``aclose`` does, and wait for nothing."""
        self._stopping = True
        if not self._cancelled:
            self._end()

    def _launch(self, child: Child, name: str) -> None:
        loop = asyncio.get_running_loop()
        scope = TaskScope()
        watch = self._watch(child, name, scope)
        task = loop.create_task(watch, name=f"{self._name}: {name}")
        self._tasks[task] = scope
        task.add_done_callback(self._child_ended)

    async def _watch(self, child: Child, name: str, scope: TaskScope) -> None:
        try:
            with scope:
                await child()
        except Exception as cause:  # noqa: BLE001  (a crash, whatever it is)
            self._crash(cause)
        except BaseException:
            # Cancelled. If not by us, then nobody who waits for this child would
            # ever learn that it is gone.
            self._crash(ClosedError(f"{self._name}: {name} was cancelled from outside"))
            raise

    def _child_ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if task.cancelled():  # perhaps before its first turn: it never ran at all
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
        if self._host is not None:
            self._host.cancel()
        for scope in [*self._tasks.values()]:
            scope.cancel()

    def _host_ended(self, host: asyncio.Task[None]) -> None:
        del host
        self._crash(ClosedError(f"{self._name}: cancelled from outside"))


def start_detached(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start a task that outlives its starter: it ends something, in bounded time.

    Whoever starts it retrieves its result, or asyncio reports what it raised.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    _detached.add(task)
    task.add_done_callback(_detached.discard)
    return task


async def _forever(loop: asyncio.AbstractEventLoop) -> None:
    await loop.create_future()


def _name_of(child: Child) -> str:
    return getattr(child, "__qualname__", repr(child))
