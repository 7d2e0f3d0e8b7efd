"""The task that called, also where its call runs in the loop of another thread.

`kafkaio._runtime.thread` makes such calls.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeAlias

#: Returns a task as long as it exists, then None.
TaskReference: TypeAlias = Callable[[], asyncio.Task[object] | None]
#: The task that runs a call, and the task of the other loop that made the call. Tasks
#: that the former starts inherit this variable but do not run the call. The references
#: are weak: a task's context would refer to the task itself, and to its caller.
call_tasks: ContextVar[tuple[TaskReference, TaskReference] | None] = ContextVar(
    "call_tasks", default=None
)


def _no_task() -> None:
    """Return None: no task runs the call."""


def refer(task: asyncio.Task[object] | None) -> TaskReference:
    """Return a weak reference to a task; for None, one that returns None."""
    return _no_task if task is None else weakref.ref(task)


def caller() -> asyncio.Task[object] | None:
    """Return the current task; in a call of a `LoopThread`, the task that called."""
    current = asyncio.current_task()
    tasks = call_tasks.get()
    if tasks is None or tasks[0]() is not current:
        return current
    return tasks[1]() or current


def when_done(task: asyncio.Task[object], callback: Callable[[], None]) -> None:
    """Call a function in this loop when a task, of any loop, has ended."""
    here, there = asyncio.get_running_loop(), task.get_loop()

    def ended(_: asyncio.Task[object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: no task waits
            here.call_soon_threadsafe(callback)

    with suppress(RuntimeError):
        there.call_soon_threadsafe(task.add_done_callback, ended)
