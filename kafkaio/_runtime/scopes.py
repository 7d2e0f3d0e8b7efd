"""Cancel scopes: a block that other code, or the passing of time, can cancel.

They are asyncio's alone, because loading those of anyio costs more than all else until
the first record. A cancelled scope cancels by level: what waits in its block is
cancelled again in each turn of the loop, until the block has been left, so that code
which catches one cancellation meets the next. Only a shielded scope inside holds that
off. Invariants:

- A scope takes back (`asyncio.Task.uncancel`) each cancellation that it has delivered
  to the task that entered it, before the block is left.
- It catches its own cancellation alone. Whatever else has cancelled the task since the
  block was entered (`asyncio.Task.cancel`, `asyncio.timeout`, a scope of anyio) shows
  in `asyncio.Task.cancelling`, also where asyncio made one exception of both.
- Two scopes do not deliver to the same code: an inner scope that is cancelled keeps the
  outer one waiting. A scope that is left gives the turn to the scopes around it.
- A task is cancelled only while it waits. If it runs, or what it waits for is there, it
  has another turn first, and keeps the result.

**anyio in the same program.** Callers may have entered a scope of anyio, and so may
code of the user that kafkaio calls. A shielded scope of this module enters a shielded
one of anyio, and what stands in a shielded scope of anyio is not cancelled. Nobody has
such a scope before anyio's backend is loaded, and this module does not load it.
"""

from __future__ import annotations

import asyncio
import sys
from math import inf
from types import TracebackType
from typing import Final, Literal, Protocol, Self

from kafkaio._runtime.timer import Timer

#: For code that has to know a cancellation from other exceptions. Raise it again.
Cancelled: Final = asyncio.CancelledError  # noqa: TID251

#: The text of the cancellations of this module.
_MESSAGE: Final = "cancelled by a scope of kafkaio"
#: The module that everybody has loaded who has entered a scope of anyio on asyncio.
_ANYIO: Final = "anyio._backends._asyncio"
#: Seconds between two looks whether a shielded scope of anyio was left: nothing tells.
_SHIELDED_BY_ANYIO: Final = 0.01

_modules: Final = sys.modules


def is_foreign(error: BaseException, before: int = 0) -> bool:
    """Whether a user's code raised CancelledError though nobody has cancelled its task.

    It does so where it waits for a future that was cancelled. Raised on, that would
    look like the cancellation of the task that called it.

    Args:
        error: what the code raised.
        before: `asyncio.Task.cancelling` of the current task before the call.
    """
    task = asyncio.current_task()
    is_own = task is None or task.cancelling() > before
    return isinstance(error, Cancelled) and not is_own


class CancelScope:
    """A block that can be cancelled, with the interface of anyio's.

    It may be made, and cancelled, in any code that the loop runs, before it is entered
    and after it was left, too. It belongs to the task that enters it, and cannot be
    left in another one: an async generator must not yield in it.

    Args:
        deadline: when to cancel it, by the loop's clock.
        shield: whether the scopes around it cannot cancel what it contains. That is not
            so for `asyncio.Task.cancel`.

    Attributes:
        cancel_called: whether it was cancelled, by a call or by its deadline.
        cancelled_caught: whether it has ended the block by that.
    """

    __slots__ = (
        "_again",
        "_anyio_outside",
        "_anyio_shield",
        "_cancelling",
        "_children",
        "_deadline",
        "_deadlines",
        "_delivered",
        "_host",
        "_parent",
        "_shield",
        "_timer",
        "cancel_called",
        "cancelled_caught",
    )

    def __init__(self, *, deadline: float = inf, shield: bool = False) -> None:
        self._deadline = deadline
        self._shield: Final = shield
        self.cancel_called: bool = False
        self.cancelled_caught: bool = False
        # While it is entered: the task, the scope around it in that task or in the task
        # that has the group, and how many cancellations the task had then.
        self._host: asyncio.Task[object] | None = None
        self._parent: CancelScope | None = None
        self._cancelling = 0
        # How often this scope has cancelled its host; and the next time.
        self._delivered = 0
        self._again: asyncio.Handle | None = None
        # The tasks of the group that has this scope, from their first step on.
        self._children: dict[asyncio.Task[object], None] | None = None
        # While the deadline is awaited, one of the two is set.
        self._deadlines: _Deadlines | None = None
        self._timer: asyncio.Handle | None = None
        self._anyio_shield: _AnyioScopePort | None = None
        self._anyio_outside: _AnyioScopePort | None = None

    @property
    def deadline(self) -> float:
        """When it is cancelled, by the loop's clock. Can be set again."""
        return self._deadline

    @deadline.setter
    def deadline(self, when: float) -> None:
        self._deadline = when
        self._forget_deadline()
        if self._host is not None and not self.cancel_called:
            self._await_deadline(self._host.get_loop())

    def cancel(self) -> None:
        """Cancel the code in the scope, now and once it is entered. Can be repeated."""
        if not self.cancel_called:
            self.cancel_called = True
            if self._host is not None:
                self._deliver()

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if self._host is not None or task is None:
            raise RuntimeError("a scope is entered by one task at a time")
        if _ANYIO in _modules:
            self._meet_anyio(task)
        self._host = task
        self._parent = _innermost.get(task)
        _innermost[task] = self
        self._cancelling = task.cancelling()
        if self.cancel_called:
            self._deliver()
        elif self._deadline != inf:
            self._await_deadline(task.get_loop())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, parent = asyncio.current_task(), self._parent
        if task is None or task is not self._host or _innermost[task] is not self:
            raise RuntimeError("a scope is left by the task, and in the order, entered")
        self._host = self._parent = None
        if parent is None:
            del _innermost[task]
        else:
            _innermost[task] = parent
        # Calls are spared here: every call to Kafka leaves one or two scopes.
        if self._deadlines is not None:
            del self._deadlines.young[self]
            self._deadlines = None
        elif self._timer is not None:
            self._forget_deadline()
        try:
            return self.cancel_called and self._catches(task, parent, error)
        finally:
            if parent is not None and (parent.cancel_called or parent._parent):
                parent._resume()
            if self._anyio_shield is not None:
                self._anyio_shield.__exit__(kind, error, trace)
                self._anyio_shield = None

    # ---- for groups of tasks ---------------------------------------------------------

    @property
    def is_cancelled(self) -> bool:
        """Whether it, or a scope around it that can cancel it, is cancelled."""
        scope: CancelScope | None = self
        while scope is not None:
            if scope.cancel_called:
                return True
            scope = None if scope._shield else scope._parent
        return False

    def adopt(self) -> None:
        """Take the current task in, until `release`: it is cancelled with the scope."""
        task = asyncio.current_task()
        assert task is not None
        if self._children is None:
            self._children = {}
        self._children[task] = None
        _innermost[task] = self
        self._resume()

    def release(self) -> None:
        """Let the current task go, which `adopt` has taken in."""
        task = asyncio.current_task()
        assert task is not None
        assert self._children is not None
        del self._children[task]
        del _innermost[task]

    # ---- cancelling ------------------------------------------------------------------

    def _deliver(self) -> None:
        """Cancel all that waits in the scope, and again while there is something."""
        self._again = None
        if self._host is None:
            return
        children = self._cancel_children(self)
        delay = min(children, _cancel_inside(self, self._host, self))
        loop = self._host.get_loop()
        if delay == 0.0:
            self._again = loop.call_soon(self._deliver)
        elif delay != inf:
            self._again = loop.call_later(delay, self._deliver)

    def _resume(self) -> None:
        """Go on cancelling: what held that off, inside this scope, has been left."""
        scope: CancelScope | None = self
        while scope is not None:
            if scope.cancel_called:
                if scope._again is None:
                    scope._deliver()
                return
            scope = None if scope._shield else scope._parent

    def _cancel_children(self, origin: CancelScope) -> float:
        if not self._children:
            return inf
        return min(_cancel_inside(self, child, origin) for child in self._children)

    def _catches(
        self,
        task: asyncio.Task[object],
        parent: CancelScope | None,
        error: BaseException | None,
    ) -> bool:
        """Take back what was delivered; whether the exception ends with this scope."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        while self._delivered:
            self._delivered -= 1
            task.uncancel()
        if parent is not None and not self._shield and parent.is_cancelled:
            return False
        if error is None or task.cancelling() > self._cancelling:
            return False
        if not isinstance(error, BaseExceptionGroup):
            self.cancelled_caught = _is_of_a_scope(error)
            return self.cancelled_caught
        own, rest = error.split(_is_of_a_scope)
        self.cancelled_caught = own is not None
        if own is not None and rest is not None:
            context = rest.__context__
            try:
                raise rest
            finally:
                rest.__context__ = context
        return self.cancelled_caught

    # ---- the deadline ----------------------------------------------------------------

    def _await_deadline(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.time() >= self._deadline:
            self.cancel()
        elif self._deadline != inf:
            deadlines = _deadlines.get(loop) or _add_deadlines(loop)
            deadlines.young[self] = None
            if self._deadline < deadlines.timer.when:
                deadlines.timer.set(self._deadline)
            self._deadlines = deadlines

    def _forget_deadline(self) -> None:
        if self._deadlines is not None:
            del self._deadlines.young[self]
            self._deadlines = None
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def expire(self) -> None:
        """Cancel it if the deadline has come, which a timer of its own awaits then."""
        self._deadlines = self._timer = None
        if self._host is None or self.cancel_called:
            return
        loop = self._host.get_loop()
        if loop.time() >= self._deadline:
            self.cancel()
        else:  # loops call a little early
            self._timer = loop.call_at(self._deadline, self.expire)

    # ---- anyio -----------------------------------------------------------------------

    def _meet_anyio(self, task: asyncio.Task[object]) -> None:
        if self._shield:
            self._anyio_shield = _modules["anyio"].CancelScope(shield=True)
            assert self._anyio_shield is not None
            self._anyio_shield.__enter__()
        self._anyio_outside = _anyio_scope(task)


class FailingScope(CancelScope):
    """A scope that raises TimeoutError where it has ended the block."""

    __slots__ = ()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        if super().__exit__(kind, error, trace):
            raise TimeoutError from error
        return False


def move_on_after(delay: float | None) -> CancelScope:
    """Make a scope that is cancelled some seconds from now; never for None."""
    if delay is None:
        return CancelScope()
    return CancelScope(deadline=asyncio.get_running_loop().time() + delay)


#: The scope that each task has entered last, for tasks that are in one.
_innermost: Final[dict[asyncio.Task[object], CancelScope]] = {}


def _cancel_inside(
    scope: CancelScope, task: asyncio.Task[object], origin: CancelScope
) -> float:
    """Cancel a task that waits in the scope, and children of groups between the two.

    Returns:
        In how many seconds to do it again; ``inf`` if nothing is in the scope, or what
        is in it has a scope around it that calls `CancelScope._resume` when it is left.
    """
    between: list[CancelScope] = []
    inner = _innermost.get(task)
    while inner is not scope:
        if inner is None:
            return inf
        between.append(inner)
        inner = inner._parent
    delay = inf
    for inner in reversed(between):
        if inner._shield or inner.cancel_called:
            return delay
        delay = min(delay, inner._cancel_children(origin))
    return min(delay, _cancel_waiting(task, origin))


def _cancel_waiting(task: asyncio.Task[object], origin: CancelScope) -> float:
    """Cancel a task if it waits; returns in how many seconds to do it again."""
    if task.done():
        return inf
    is_host = task is origin._host
    if _is_busy(task):
        return 0.0
    if _ANYIO in _modules and _is_shielded_by_anyio(
        task, origin._anyio_outside if is_host else None
    ):
        return _SHIELDED_BY_ANYIO
    task.cancel(_MESSAGE)
    if is_host:
        origin._delivered += 1
    return 0.0


def _is_busy(task: asyncio.Task[object]) -> bool:
    """Whether a task runs, was cancelled, or has what it waited for."""
    # Another task may have been started inside its step (asyncio.eager_task_factory).
    # That one is current, and this one could leave its scope before it is cancelled.
    if task is asyncio.current_task(task.get_loop()):
        return True
    if getattr(task.get_coro(), "cr_running", False):
        return True
    if task._must_cancel:  # type: ignore[attr-defined]
        return True
    waiter = task._fut_waiter  # type: ignore[attr-defined]
    return isinstance(waiter, asyncio.Future) and waiter.done()


def _is_of_a_scope(error: BaseException | None) -> bool:
    # Code that catches a cancellation may raise another one in its place.
    while isinstance(error, Cancelled):
        if error.args == (_MESSAGE,):
            return True
        error = error.__context__
    return False


class _Deadlines:
    """The deadlines of the scopes of one loop.

    Most scopes are left long before their deadline, and a timer for each costs more
    than the rest of it. So the young ones have one timer, for the earliest of them.
    When it fires, those that are left get timers of their own, so that no scope is
    looked at more than once.
    """

    __slots__ = ("timer", "young")

    def __init__(self) -> None:
        self.timer = Timer(self._end_youth)
        # In the order in which they were entered.
        self.young: dict[CancelScope, None] = {}

    def _end_youth(self) -> None:
        grown, self.young = self.young, {}
        for scope in grown:
            scope.expire()


_deadlines: Final[dict[asyncio.AbstractEventLoop, _Deadlines]] = {}


def _add_deadlines(loop: asyncio.AbstractEventLoop) -> _Deadlines:
    for other in [*_deadlines]:  # a loop does not say when it is closed
        if other.is_closed():
            _deadlines.pop(other, None)
    return _deadlines.setdefault(loop, _Deadlines())


# ---- anyio ---------------------------------------------------------------------------


class _AnyioScopePort(Protocol):
    """What is used of anyio's cancel scope."""

    @property
    def shield(self) -> bool: ...

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> object: ...


def _anyio_scope(task: asyncio.Task[object]) -> _AnyioScopePort | None:
    """Return the scope of anyio that a task has entered last.

    anyio has no name for that in public. If it changes these, shields of anyio in a
    scope of this module hold off nothing; a test notices it.
    """
    states = getattr(_modules[_ANYIO], "_task_states", {})
    scope: _AnyioScopePort | None = getattr(states.get(task), "cancel_scope", None)
    return scope


def _is_shielded_by_anyio(
    task: asyncio.Task[object], outside: _AnyioScopePort | None
) -> bool:
    scope = _anyio_scope(task)
    while scope is not None and scope is not outside:
        if scope.shield:
            return True
        scope = getattr(scope, "_parent_scope", None)
    return False
