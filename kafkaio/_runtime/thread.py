"""An event loop in a thread of its own, and the ways there and back.

What crosses is a call, there or home: it runs in a task of the other loop, and its
caller waits on its own. Nothing is shared but what a call brings.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import anyio

from kafkaio._runtime.lifecycle import Ending
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import ClosedError

__all__ = ["LoopThread", "TaskReference", "caller", "refer", "when_done"]

T = TypeVar("T")
#: Gives a task for as long as it is there.
TaskReference: TypeAlias = Callable[[], asyncio.Task[object] | None]
#: The task that does what crossed, and the one over there that it does it for. Tasks
#: that the former starts inherit this, and do their own work. Weak, because a task's
#: context would refer to the task itself, and to all that its caller left behind.
_crossing: ContextVar[tuple[TaskReference, TaskReference] | None] = ContextVar(
    "crossing", default=None
)


def _no_task() -> None:
    """There is none."""


def refer(task: asyncio.Task[object] | None) -> TaskReference:
    """A weak reference to a task; to None, if that is what is given."""
    return _no_task if task is None else weakref.ref(task)


def caller() -> asyncio.Task[object] | None:
    """The task that this is done for: in a call that crossed, the one over there."""
    current = asyncio.current_task()
    crossing = _crossing.get()
    if crossing is None or crossing[0]() is not current:
        return current
    return crossing[1]() or current


def when_done(task: asyncio.Task[object], tell: Callable[[], None]) -> None:
    """Call ``tell`` here when a task has ended, of this loop or of another."""
    here, there = asyncio.get_running_loop(), task.get_loop()

    def ended(_: asyncio.Task[object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            here.call_soon_threadsafe(tell)

    with suppress(RuntimeError):
        there.call_soon_threadsafe(task.add_done_callback, ended)


class LoopThread:
    """Runs an event loop beside the one that starts it, its home.

    Args:
        name: of the thread and its tasks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._home = _Side(name)
        self._there = _Side(name)
        self._is_up = threading.Event()
        self._gone = asyncio.Event()
        self._stop = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether calls can be made."""
        return self._there.is_open

    @property
    def is_inside(self) -> bool:
        """Whether the caller runs in the thread."""
        return threading.get_ident() == self._thread.ident

    def start(self) -> None:
        """Start the thread; its loop runs when the call returns.

        Raises:
            ClosedError: it was started before.
        """
        if self._thread.ident is not None:
            raise ClosedError(f"{self._name}: started before")
        self._home.open()
        self._thread.start()
        self._is_up.wait()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` in the thread, and wait for it.

        If the call is cancelled, so is the work, and it has ended when the call raises.

        Raises:
            ClosedError: the thread does not run, or ended meanwhile.
            Exception: what the work raised.
        """
        return await _cross(self._there, work)

    async def call_home(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` at home, and wait for it in the thread; else as ``call``."""
        return await _cross(self._home, work)

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function in the thread, and block the caller until it has answered.

        That takes as long as the thread's loop takes for the turn that it is at.

        Raises:
            ClosedError: the thread does not run.
            Exception: what the function raised.
        """
        answer: Future[T] = Future()

        def put() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:  # noqa: BLE001  (raised by the caller)
                answer.set_exception(error)

        self._there.soon(put)
        return answer.result()

    async def aclose(self, within: float | None = None) -> None:
        """End the loop, with all that runs in it, and join the thread.

        Calls under way raise ClosedError. May be called again. If the call is
        cancelled, the thread ends all the same.

        Args:
            within: seconds after which a thread that does not end is left to itself;
                no interpreter waits for it at its exit.
        """
        if self._thread.ident is None:
            return
        self._there.tell(self._stop.set)
        ending = Ending(f"{self._name}: close")
        await ending.begin(None, partial(self._join, within))

    async def _join(self, within: float | None) -> None:
        try:
            with anyio.move_on_after(within):
                await self._gone.wait()
                self._thread.join()
        finally:
            await self._home.aclose()

    def abandon(self) -> None:
        """Have the loop end, with all that runs in it, and wait for nothing.

        From any thread; nothing happens if it does not run.
        """
        self._there.tell(self._stop.set)
        self._home.tell(self._home.abandon)

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._live())
        finally:
            self._home.tell(self._gone.set)

    async def _live(self) -> None:
        self._there.open()
        self._is_up.set()
        await self._stop.wait()
        await self._there.aclose()


class _Side:
    """A loop that calls come to."""

    def __init__(self, name: str) -> None:
        self._supervisor = Supervisor(name, self._crashed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: dict[_Call[object], None] = {}
        # Held while something is handed to the loop, and when it stops listening: so
        # what was handed to it is always heard.
        self._door = threading.Lock()
        self.is_open = False

    def open(self) -> None:
        """Take calls on the loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._supervisor.start()
        self.is_open = True

    def soon(self, step: Callable[[], object]) -> None:
        """Do something in the loop's next turn; from any thread.

        Raises:
            ClosedError: the loop takes no calls.
        """
        with self._door:
            if not self.is_open or self._loop is None:
                raise ClosedError("the I/O thread does not run")
            self._loop.call_soon_threadsafe(step)

    def tell(self, step: Callable[[], object]) -> None:
        """Do something in the loop's next turn, if there is still one."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(step)

    def begin(self, call: _Call[object]) -> None:
        """Run a call; on the loop."""
        self._calls[call] = None

        async def run() -> None:
            try:
                await call.run()
            except anyio.get_cancelled_exc_class():
                # By aclose, or by who knows whom: who called has heard of it, and the
                # other calls go on.
                return
            finally:
                self._calls.pop(call, None)

        try:
            self._supervisor.start_soon(run, "call")
        except ClosedError:
            del self._calls[call]
            call.tell()

    async def aclose(self) -> None:
        """End all calls, and take no more."""
        with self._door:
            self.is_open = False
        await asyncio.sleep(0)  # what was handed in before is begun
        await self._supervisor.aclose()
        for call in self._calls:  # cancelled before their first step
            call.tell()
        self._calls.clear()

    def abandon(self) -> None:
        """Begin to end all calls, and wait for nothing; on the loop."""
        self.is_open = False
        self._supervisor.cancel()

    def _crashed(self, cause: BaseException) -> None:
        """Somebody cancelled what owns the calls: there can be no more."""
        del cause
        self.is_open = False


class _Call(Generic[T]):
    """Some work for another loop, and who waits for it."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._asker = asyncio.get_running_loop()
        self._task = refer(caller())
        self._scope: anyio.CancelScope | None = None
        self._is_cancelled = False
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Do the work; on the other loop."""
        _crossing.set((refer(asyncio.current_task()), self._task))
        try:
            with anyio.CancelScope() as self._scope:
                if self._is_cancelled:
                    self._scope.cancel()
                self._result.append(await self._work())
        except Exception as error:  # noqa: BLE001  (raised where the caller waits)
            self._error = error
        finally:
            self.tell()

    def cancel(self) -> None:
        """Cancel the work; on the other loop."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def tell(self) -> None:
        """Tell the caller that this has ended."""
        with suppress(RuntimeError):  # its loop is closed
            self._asker.call_soon_threadsafe(self.ended.set)

    def outcome(self) -> T:
        """What came of it.

        Raises:
            ClosedError: the other loop ended first.
            Exception: what the work raised.
        """
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # Its traceback refers to this frame: nothing of the call would be freed
                # before the garbage collector runs.
                del error
        if not self._result:
            raise ClosedError("the I/O thread has ended")
        return self._result[0]


async def _cross(side: _Side, work: Callable[[], Awaitable[T]]) -> T:
    call = _Call(work)
    side.soon(lambda: side.begin(call))  # type: ignore[arg-type]  # of whatever type
    try:
        await call.ended.wait()
    except BaseException:
        with suppress(ClosedError):
            side.soon(call.cancel)
        # However often we are cancelled, as in a task group: else the work would still
        # go on when the caller takes its next step.
        async with anyio.create_task_group() as group:
            group.start_soon(_wait_shielded, call.ended)
        raise
    return call.outcome()


async def _wait_shielded(event: asyncio.Event) -> None:
    with anyio.CancelScope(shield=True):
        await event.wait()
