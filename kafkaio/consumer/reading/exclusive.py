"""Who reads, one task at a time; and whom closing waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ReferenceType, ref

from kafkaio._runtime.thread import caller
from kafkaio.errors import UsageError

__all__ = ["ExclusiveReading", "Insiders"]


class ExclusiveReading:
    """Lets one task read, for as long as it has entered this.

    Raises:
        UsageError: on entering: another task reads already.
    """

    __slots__ = ("_task", "is_on")

    def __init__(self) -> None:
        #: Whether somebody reads right now.
        self.is_on = False
        # Who read last.
        self._task: ReferenceType[asyncio.Task[object]] | None = None

    def __enter__(self) -> None:
        if self.is_on:
            raise UsageError("another task is reading from this consumer")
        self.is_on = True
        if (task := caller()) is not None:
            self._task = ref(task)

    def __exit__(self, *why: object) -> None:
        self.is_on = False

    @property
    def is_by_caller(self) -> bool:
        """Whether the task that asks is the one that read last."""
        return self._task is not None and self._task() is caller()


class Insiders:
    """Our tasks that run code of the user's: closing waits for what they are at."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object] | None] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The caller is one of them within the block."""
        task = caller()
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    @property
    def have_caller(self) -> bool:
        """Whether the task that asks is one of them."""
        return caller() in self._tasks
