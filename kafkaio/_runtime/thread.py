"""An event loop in a thread, and calls between it and the loop that started it.

A call runs in a task of the other loop, and its caller waits in its own loop. The two
loops share nothing except the arguments and results of calls. The loop that starts the
thread is called the owner's loop.

Invariant: a call that was handed to a loop is answered, also if the loop ends first.
`_Side` therefore holds a lock while it hands over, and while it stops taking calls.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from kafkaio._generic import Generic
from kafkaio._runtime.caller import call_tasks, caller, refer
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.lifecycle import Ending
from kafkaio._runtime.loop import running_loop
from kafkaio._runtime.scopes import Cancelled, CancelScope, is_foreign, move_on_after
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import ClosedError

T = TypeVar("T")


class LoopThread:
    """Runs an event loop in a thread, beside the loop that starts it.

    Args:
        name: of the thread and its tasks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._owner = _Side(name)
        self._inside = _Side(name)
        self._is_up = threading.Event()
        self._gone = asyncio.Event()
        self._stop = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether the thread takes calls."""
        return self._inside.is_open

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
        self._owner.open()
        self._thread.start()
        self._is_up.wait()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` in the thread, and wait for it.

        If the call is cancelled, so is the work, and it has ended when the call raises
        the cancellation.

        Raises:
            ClosedError: the thread does not run, or ended meanwhile.
            Exception: the work raised it.
        """
        return await _cross(self._inside, work)

    async def call_owner(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` in the owner's loop, and wait for it in the thread.

        Otherwise as `call`.
        """
        return await _cross(self._owner, work)

    async def call_user(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a user's code in the owner's loop, and wait for it in the thread.

        Otherwise as `call_owner`. If it raises CancelledError though nobody has
        cancelled it, this call raises that, too.
        """
        return await _cross(self._owner, work, is_user=True)

    def tell(self, step: Callable[[], object]) -> None:
        """Call a function in the thread's loop soon, if it runs; does not wait."""
        self._inside.soon_if_running(step)

    def tell_owner(self, step: Callable[[], object]) -> None:
        """Call a function in the owner's loop soon; does not wait."""
        self._owner.soon_if_running(step)

    def call_blocking(self, work: Callable[[], T]) -> T:
        """Call a function in the thread, and block the caller until it has returned.

        That takes as long as the current iteration of the thread's loop.

        Raises:
            ClosedError: the thread does not run.
            Exception: the function raised it.
        """
        answer: Future[T] = Future()

        def put() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:  # noqa: BLE001  (raised by the caller)
                answer.set_exception(error)

        self._inside.soon(put)
        return answer.result()

    async def aclose(self, within: float | None = None) -> None:
        """End the loop, with all that runs in it, and join the thread.

        Calls that have not returned raise ClosedError. May be called again. If the call
        is cancelled, the thread ends all the same.

        Args:
            within: seconds to wait for the thread. One that does not end in time is a
                daemon: the interpreter does not wait for it at its exit.
        """
        if self._thread.ident is None:
            return
        self._inside.soon_if_running(self._stop.set)
        ending = Ending(f"{self._name}: close")
        await ending.begin(None, partial(self._join, within))

    async def _join(self, within: float | None) -> None:
        try:
            with move_on_after(within):
                await self._gone.wait()
                self._thread.join()
        finally:
            await self._owner.aclose()

    def abandon(self) -> None:
        """Make the loop end, with all that runs in it; does not wait.

        May be called in any thread; does nothing if the loop does not run.
        """
        self._inside.soon_if_running(self._stop.set)
        self._owner.soon_if_running(self._owner.abandon)

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._live())
        finally:
            self._owner.soon_if_running(self._gone.set)

    async def _live(self) -> None:
        self._inside.open()
        self._is_up.set()
        await self._stop.wait()
        await self._inside.aclose()


#: All sides of this process; one that was forked from it has none of their threads.
_sides: WeakSet[_Side] = WeakSet()


def _forked() -> None:
    for side in _sides:
        side.is_open = False


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


class _Side:
    """One of the two loops, which takes calls."""

    def __init__(self, name: str) -> None:
        self._supervisor = Supervisor(name, self._crashed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: dict[_LoopCall[object], None] = {}
        # Held while a call is handed to the loop, and while the loop stops taking
        # calls: so every call that was handed over is answered.
        self._lock = threading.Lock()
        self.is_open = False
        _sides.add(self)

    def open(self) -> None:
        """Take calls on the loop that runs now."""
        self._loop = running_loop()
        self._supervisor.start()
        self.is_open = True

    def soon(self, step: Callable[[], object]) -> None:
        """Call a function in the loop's next iteration; from any thread.

        Raises:
            ClosedError: the loop takes no calls.
        """
        with self._lock:
            if not self.is_open or self._loop is None:
                raise ClosedError("the I/O thread does not run")
            self._loop.call_soon_threadsafe(step)

    def soon_if_running(self, step: Callable[[], object]) -> None:
        """Call a function in the loop's next iteration, if the loop still exists."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(step)

    def begin(self, call: _LoopCall[object]) -> None:
        """Run a call; on the loop."""
        self._calls[call] = None

        async def run() -> None:
            try:
                await call.run()
            except Cancelled:
                # `aclose`, or other code, cancelled it. `_LoopCall.run` notifies the
                # caller; the other calls go on.
                return
            finally:
                self._calls.pop(call, None)

        try:
            self._supervisor.start_soon(run, "call")
        except ClosedError:
            del self._calls[call]
            call.notify_caller()

    async def aclose(self) -> None:
        """Refuse further calls, and end those that run."""
        with self._lock:
            self.is_open = False
        await asyncio.sleep(0)  # calls handed over before begin
        await self._supervisor.aclose()
        for call in self._calls:  # cancelled before their first step
            call.notify_caller()
        self._calls.clear()

    def abandon(self) -> None:
        """Begin to end all calls, without waiting; on the loop."""
        self.is_open = False
        self._supervisor.cancel()

    def _crashed(self, cause: BaseException) -> None:
        """Refuse further calls: other code cancelled the supervisor of the calls."""
        del cause
        self.is_open = False


class _LoopCall(Generic[T]):
    """A call to the other loop, and the task that waits for it."""

    def __init__(
        self, work: Callable[[], Awaitable[T]], *, is_user: bool = False
    ) -> None:
        self._work = work
        self._is_user = is_user
        self._caller_loop = asyncio.get_running_loop()
        self._task = refer(caller())
        self._scope: CancelScope | None = None
        self._is_cancelled = False
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Do the work; on the other loop."""
        call_tasks.set((refer(asyncio.current_task()), self._task))
        try:
            with CancelScope() as self._scope:
                if self._is_cancelled:
                    self._scope.cancel()
                self._result.append(await self._work())
        except Exception as error:  # noqa: BLE001  (raised where the caller waits)
            self._error = error
        except BaseException as error:
            if not (self._is_user and is_foreign(error)):
                raise
            self._error = error
        finally:
            self.notify_caller()

    def cancel(self) -> None:
        """Cancel the work; on the other loop."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def notify_caller(self) -> None:
        """Wake the caller: this call has ended."""
        with suppress(RuntimeError):  # its loop is closed
            self._caller_loop.call_soon_threadsafe(self.ended.set)

    def outcome(self) -> T:
        """Return the result of the work.

        Raises:
            ClosedError: the other loop ended first.
            Exception: the work raised it.
        """
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # The error's traceback refers to this frame: without this, nothing of
                # the call would be freed before the garbage collector runs.
                del error
        if not self._result:
            raise ClosedError("the I/O thread has ended")
        return self._result[0]


async def _cross(
    side: _Side, work: Callable[[], Awaitable[T]], *, is_user: bool = False
) -> T:
    call = _LoopCall(work, is_user=is_user)
    side.soon(lambda: side.begin(call))  # type: ignore[arg-type]  # of whatever type
    try:
        await call.ended.wait()
    except BaseException:
        with suppress(ClosedError):
            side.soon(call.cancel)
        # Wait for the end of the work, however often this task is cancelled: otherwise
        # the work would still run when the caller continues.
        async with TaskGroup() as group:
            group.start_soon(_wait_shielded, call.ended)
        raise
    return call.outcome()


async def _wait_shielded(event: asyncio.Event) -> None:
    with CancelScope(shield=True):
        await event.wait()
