"""The lifecycle of a client, a producer or a consumer.

Such an object has a `Lifecycle` among its parts, and derives from `Closeable`. It goes
from NEW over STARTING to RUNNING, and over CLOSING to CLOSED from each of these. A
crash of a background task leads from STARTING and RUNNING to FAILED, and an object that
failed can only be closed. Nothing leads back: an object starts once and closes once,
however many callers ask for it. Invariants:

- The object belongs to the event loop and to the process in which it was started.
  `Lifecycle.check` and `Lifecycle.begin_close` refuse calls from elsewhere.
- The first crash of a background task is kept as the cause. It is the error of every
  call that comes later, also after the object was closed.
- The work of closing runs in a task of its own (`Ending`), because
  `asyncio.Task.cancel` reaches a task wherever it waits: an anyio shield holds off
  cancelled scopes, but not that. The callers of ``close()`` wait for that task, and a
  cancelled caller stops only its own waiting.
- The loop must not hold a reference to the public object, or it would never be
  collected and could not warn that it was left open. Background tasks refer to its
  parts, and to its methods only by `weakly`. A `Lifecycle` does not refer to it.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Final, ParamSpec, Self
from weakref import WeakMethod, WeakSet

from kafkaio._runtime.loop import running_loop
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.supervisor import Child, start_detached
from kafkaio.errors import ClosedError, InternalError, KafkaError

P = ParamSpec("P")

#: Called with the exception that crashed a background task.
CrashListener = Callable[[BaseException], None]

_homes: WeakSet[Home] = WeakSet()


def _forked() -> None:
    for home in _homes:
        home.forked()


# The process id would cost a system call in every call.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


class LifecycleState(Enum):
    """Where an object is in its life; ``statistics().state`` is one of the values."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    CLOSING = "closing"
    CLOSED = "closed"


#: Looked up once: each look into an enum takes as long as a short call.
_RUNNING: Final = LifecycleState.RUNNING


class Home:
    """The event loop and the process in which an object was started.

    Args:
        what: the object, for messages.

    Attributes:
        loop: the event loop.
        is_elsewhere: whether this process was forked from the one of the object.
        on_fork: called in a process that is forked from it.
    """

    __slots__ = ("__weakref__", "_what", "is_elsewhere", "loop", "on_fork")

    def __init__(self, what: str) -> None:
        self._what = what
        self.loop: asyncio.AbstractEventLoop = running_loop()
        self.is_elsewhere: bool = False
        self.on_fork: Callable[[], object] | None = None
        _homes.add(self)

    def forked(self) -> None:
        """Note that this process was forked from that of the object."""
        self.is_elsewhere = True
        if self.on_fork is not None:
            self.on_fork()

    def check(self) -> None:
        """Raise unless process and running loop are those of the object.

        Raises:
            ClosedError: the process or the loop is another one.
        """
        if self.is_elsewhere:
            self.check_process()
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:  # a thread without one
            running = None
        if running is not self.loop:
            raise ClosedError(
                f"{self._what} was started on another event loop and belongs to it"
            )

    def check_process(self) -> None:
        """Raise unless the process is that of the object.

        Raises:
            ClosedError: the process is another one.
        """
        if self.is_elsewhere:
            raise ClosedError(
                f"{self._what} was started in another process: make a new one after "
                "fork"
            )

    def soon(self, step: Callable[[], object]) -> None:
        """Call a function in the loop's next iteration, if the loop still exists.

        May be called in any thread, and while the garbage collector runs.
        """
        if not self.is_elsewhere:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(step)


class Lifecycle:
    """The state of one object: whether it can be used, here and now, and why not.

    Args:
        kind: what the object is: ``client``, ``producer``, ``consumer`` or ``admin``.
        name: its name, for messages.

    Attributes:
        state: where it is in its life.
        home: where it was started; None before.
        cause: the exception that crashed the first background task; None if none did.
        has_owner: whether another object closes this one; then that one warns if it
            was left open.
    """

    __slots__ = (
        "_ending",
        "_is_end_reported",
        "_listeners",
        "_what",
        "cause",
        "has_owner",
        "home",
        "state",
    )

    def __init__(self, kind: str, name: str) -> None:
        self._what = f"the {kind} {name!r}"
        self._ending = Ending(f"{self._what}: close")
        self._listeners: list[CrashListener] = []
        self._is_end_reported = False
        self.state: LifecycleState = LifecycleState.NEW
        self.home: Home | None = None
        self.cause: BaseException | None = None
        self.has_owner: bool = False

    def __repr__(self) -> str:
        return f"<Lifecycle of {self._what}: {self.state.value}>"

    # Start

    def begin(self) -> Home:
        """Begin to start: the object belongs to this event loop and process now.

        Raises:
            ClosedError: it was started, or closed, before.
            UsageError: no event loop of asyncio runs.
        """
        if self.state is not LifecycleState.NEW:
            raise ClosedError(
                f"{self._what} is {self.state.value}: it cannot be started again"
            )
        self.home = Home(self._what)
        self.state = LifecycleState.STARTING
        return self.home

    def started(self) -> None:
        """Note that the object has started, unless it failed or was closed meanwhile.

        Raises:
            KafkaError: it failed or was closed; see `why_unusable`.
        """
        if self.state is not LifecycleState.STARTING:
            raise self.why_unusable()
        self.state = LifecycleState.RUNNING

    # Use

    def check(self, *also: LifecycleState) -> None:
        """Raise unless the object can be used here and now.

        Args:
            also: states other than RUNNING in which the call is allowed.

        Raises:
            ClosedError: it was not started, is closed, or belongs to another event loop
                or process.
            KafkaError: a background task crashed; see `why_unusable`.
        """
        if self.home is not None:
            self.home.check()
        if self.state is not _RUNNING and self.state not in also:
            raise self.why_unusable()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or is closing, without a crash before."""
        return (
            self.state in {LifecycleState.CLOSING, LifecycleState.CLOSED}
            and self.cause is None
        )

    def check_process(self) -> None:
        """Raise if the process was forked from the one of the object.

        For calls that need no running object, and that any loop may make.

        Raises:
            ClosedError: it belongs to another process.
        """
        if self.home is not None:
            self.home.check_process()

    def why_unusable(self) -> KafkaError:
        """Return the error for a call that needs a running object.

        A crash by a KafkaError is that error; any other crash is a bug, and so an
        InternalError with the exception as its cause.
        """
        cause = self.cause
        if isinstance(cause, ClosedError):  # its loop ended it, for example
            return ClosedError(str(cause))
        if isinstance(cause, KafkaError):
            return cause
        if cause is not None:
            error = InternalError(
                f"a background task of {self._what} crashed: "
                f"{type(cause).__name__}: {cause}"
            )
            error.__cause__ = cause
            return error
        if self.state is LifecycleState.NEW:
            return ClosedError(
                f"{self._what} is not started: use `async with` or start()"
            )
        if self.state is LifecycleState.STARTING:
            return ClosedError(f"{self._what} is still starting")
        return ClosedError(f"{self._what} is closed")

    # Crash

    def crashed(self, cause: BaseException) -> None:
        """Note that a background task crashed, and call the crash listeners.

        The first crash counts; one of an object that is closed changes nothing. While
        the object closes, its state stays CLOSING.
        """
        if self.cause is not None or self.state in {
            LifecycleState.NEW,
            LifecycleState.CLOSED,
        }:
            return
        self.cause = cause
        if self.state is not LifecycleState.CLOSING:
            self.state = LifecycleState.FAILED
        for listener in tuple(self._listeners):
            listener(cause)

    def add_crash_listener(self, listener: CrashListener) -> Callable[[], None]:
        """Call ``listener`` once, in the order of these calls, if a task crashes.

        Returns:
            A function that removes the listener.
        """
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    # End

    def begin_close(self) -> LifecycleState | None:
        """Begin to close: the state is CLOSING from now on.

        Returns:
            The state before, for the caller that is to call `close`. None if another
            call came first: then `closed` waits for its end.

        Raises:
            ClosedError: the object belongs to another event loop or process.
        """
        before = self.state
        if before is LifecycleState.CLOSED:
            return None
        if self.home is not None:
            self.home.check()
        if before is LifecycleState.CLOSING:
            return None
        self.state = LifecycleState.CLOSING
        return before

    async def close(self, part: Child | None, end: Child) -> None:
        """Run the work of closing, after `begin_close`; see `Ending.begin`.

        The state is CLOSED when ``end`` has returned, or earlier if it calls `ended`.
        """

        async def to_the_end() -> None:
            try:
                await end()
            finally:
                self.state = LifecycleState.CLOSED

        await self._ending.begin(part, to_the_end)

    async def closed(self) -> None:
        """Wait until the call of `close` that came first has ended."""
        await self._ending.wait()

    def ended(self) -> bool:
        """Note that the object is closed.

        Returns:
            Whether to report it to observers: True once, if it was started.
        """
        self.state = LifecycleState.CLOSED
        is_news = self.home is not None and not self._is_end_reported
        self._is_end_reported = True
        return is_news

    def abandon(self) -> None:
        """Note that the object is closed because it, or its owner, was collected."""
        self.state = LifecycleState.CLOSED

    def soon(self, step: Callable[[], object]) -> None:
        """Call a function in the loop's next iteration; see `Home.soon`."""
        if self.home is not None:
            self.home.soon(step)

    @property
    def is_open(self) -> bool:
        """Whether it was started, and no call has begun to close it."""
        return self.state in {
            LifecycleState.STARTING,
            LifecycleState.RUNNING,
            LifecycleState.FAILED,
        }

    @property
    def left_open(self) -> str | None:
        """The object, for a warning that it was not closed; None if there is none."""
        home = self.home
        if not self.is_open or self.has_owner or home is None or home.is_elsewhere:
            return None
        return self._what


class Closeable(ABC):
    """An object that must be closed. It gives a ResourceWarning if it was left open.

    ``async with`` starts and closes it. The warning may come while the loop runs, after
    it, or when the interpreter exits, and in any thread.

    Attributes:
        _life: the lifecycle, which the constructor sets first.
    """

    _life: Lifecycle

    @abstractmethod
    async def start(self, timeout: float | None = None) -> None:
        """Start, and return when it can be used."""

    @abstractmethod
    async def close(self, timeout: float | None = None) -> None:
        """Close, in bounded time and in every state. May be called again."""

    @abstractmethod
    def _abandon(self) -> None:
        """Make the parts end soon: the object is collected while it is open.

        Runs in any thread: it hands functions to `Lifecycle.soon`, which must not refer
        to the object itself.
        """

    async def _leave(self, error: BaseException | None) -> None:
        """Close at the end of ``async with``, which an error may have ended."""
        del error
        await self.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._leave(error)
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"and in closing: {failure!r}")

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        life: Lifecycle | None = getattr(self, "_life", None)  # None: never set up
        what = None if life is None else life.left_open
        if what is not None:
            self._abandon()
            _warn(
                f"{what} was started and never closed: use `async with`, or close()",
                ResourceWarning,
                source=self,
            )


class Ending:
    """The end of one object, begun once and waited for by any number of callers.

    It has two parts. The first is cut short when the caller that began it is
    cancelled; the second always runs. If the task of this is cancelled from outside,
    for example with every other task of the loop, it still runs the second part, and
    the next caller starts that part again in case it was cut short, too.

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

        If the call is cancelled, ``part`` is cut short, and the call waits for ``end``.
        If it is cancelled again, it returns at once, and ``end`` goes on.

        Args:
            part: the work that can be left out, such as waiting for others; None for
                none.
            end: the work that must be done. It must take a bounded time, and may be
                called again.

        Raises:
            Exception: ``part`` or ``end`` raised it.
        """
        self._end = end
        grace = CancelScope()

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
            with CancelScope(shield=True):
                await _done(self._task)
            raise

    async def wait(self) -> None:
        """Wait until it is done.

        Returns at once if it was never begun, and in its own task. If the call is
        cancelled, nothing changes.

        Raises:
            Exception: the work raised it.
        """
        while (task := self._task) is not None and task is not asyncio.current_task():
            await _done(task)
            if not task.cancelled():
                task.result()
                return
            if self._task is task:
                assert self._end is not None
                self._task = start_detached(self._end(), self._name)


async def _done(task: asyncio.Task[None]) -> None:
    if not task.done():  # else its loop may be another one, and closed
        await asyncio.wait([task])


def weakly(method: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls a bound method as long as its object exists."""
    weak: WeakMethod[Callable[P, None]] = WeakMethod(method)

    def call(*args: P.args, **options: P.kwargs) -> None:
        strong = weak()
        if strong is not None:
            strong(*args, **options)

    return call
