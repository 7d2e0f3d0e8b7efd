"""What belongs to one event loop, and warns if it is not closed there."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec
from weakref import WeakMethod, WeakSet

from kafkaio.errors import ClosedError

__all__ = ["Closeable", "Home", "weakly"]

P = ParamSpec("P")

_homes: WeakSet[Home] = WeakSet()


def _forked() -> None:
    for home in _homes:
        home.forked()


# To ask for the process with every call would cost a system call.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


class Home:
    """The event loop and the process that something was started in.

    Args:
        what: what was started, for messages.

    Attributes:
        loop: the event loop.
        is_elsewhere: whether this process was forked from the one that is meant.
        on_fork: called in a process that was forked from it.
    """

    __slots__ = ("__weakref__", "_what", "is_elsewhere", "loop", "on_fork")

    def __init__(self, what: str) -> None:
        self._what = what
        self.loop = asyncio.get_running_loop()
        self.is_elsewhere = False
        self.on_fork: Callable[[], object] | None = None
        _homes.add(self)

    def forked(self) -> None:
        """This is another process now."""
        self.is_elsewhere = True
        if self.on_fork is not None:
            self.on_fork()

    def check(self) -> None:
        """Raise unless this is the process, and the loop that runs.

        Raises:
            ClosedError: it is not.
        """
        if self.is_elsewhere:
            raise ClosedError(
                f"{self._what} was started in another process: make a new one after "
                "fork"
            )
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:  # a thread without one
            running = None
        if running is not self.loop:
            raise ClosedError(
                f"{self._what} was started on another event loop and belongs to that"
            )

    def soon(self, step: Callable[[], object]) -> None:
        """Do something in the loop's next turn, if there is still one.

        From any thread, and while the garbage collector runs.
        """
        if not self.is_elsewhere:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(step)


class Closeable:
    """What must be closed; one that is forgotten while it is open says so.

    That may be while its loop runs, after it, or as the interpreter ends, and in any
    thread. Nothing that its loop runs may lead to it, or it would never be collected:
    background tasks hold its parts, and its methods by `weakly` alone.
    """

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        what = self._left_open()
        if what is not None:
            self._forgotten()
            _warn(
                f"{what} was started and never closed: use `async with`, or close()",
                ResourceWarning,
                source=self,
            )

    def _forgotten(self) -> None:
        """Have what would go on by itself end soon: see `Home.soon`."""

    def _left_open(self) -> str | None:
        """What is open, in words; None where nothing is, or if it is not even made."""
        raise NotImplementedError


def weakly(method: Callable[P, None]) -> Callable[P, None]:
    """A function that calls a bound method, and nothing once its object is gone."""
    weak: WeakMethod[Callable[P, None]] = WeakMethod(method)

    def call(*args: P.args, **options: P.kwargs) -> None:
        strong = weak()
        if strong is not None:
            strong(*args, **options)

    return call
