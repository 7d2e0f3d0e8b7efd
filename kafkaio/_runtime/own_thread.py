"""Calls that block, each in a thread of its own.

They do not use the loop's executor, which belongs to the application: while all of its
threads are busy, the next call would wait. A thread of this module is a
daemon: the process ends without waiting for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

from kafkaio._runtime.scopes import CancelScope

T = TypeVar("T")


def start_thread(call: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Call a function in a new thread; the caller bounds the number of threads.

    Args:
        call: runs in a copy of the current context.
        name: of the thread.

    Returns:
        A future with the result or the exception of the call; with an OSError if no
        thread can be started. If it is cancelled, or the loop is closed, the thread
        goes on, and its outcome is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def succeed(result: T) -> None:
        if not future.done():
            future.set_result(result)

    def fail(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def run() -> None:
        try:
            result = context.run(call)
        except Exception as error:  # noqa: BLE001 - the future raises it
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(fail, error)
        else:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(succeed, result)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:  # too many, or the interpreter ends
        future.set_exception(OSError(str(error)))
    return future


async def in_thread(call: Callable[[], T], name: str) -> T:
    """Call a function in a new thread, and wait for it; see `start_thread`.

    A scope that is cancelled does not end the wait. If the task is cancelled, the
    thread goes on.

    Raises:
        OSError: no thread can be started.
        Exception: the call raised it.
    """
    with CancelScope(shield=True):
        result = await start_thread(call, name)
    return result  # noqa: RET504 - a type checker thinks that scopes end blocks
