"""Tracks which task reads, and which tasks run code of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ReferenceType, ref

from kafkaio._runtime.caller import caller
from kafkaio.errors import UsageError


class UsedInHandler(UsageError):
    """A handler of ``run`` that reads from its consumer, or closes it.

    Every record would fail alike, so a run in which records are tried again ends.
    """


class ExclusiveReading:
    """Lets one task read at a time: the task within the ``with`` block.

    Raises:
        UsageError: on entering: another task is within the block.
    """

    __slots__ = ("_task", "is_on")

    def __init__(self) -> None:
        #: Whether a task reads now.
        self.is_on: bool = False
        # The task that read last; weakly, so that a task that has ended is not kept.
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
        """Whether the calling task is the one that read last."""
        return self._task is not None and self._task() is caller()


class UserCode:
    """The tasks of the consumer that run a callback or handler of the user now.

    Closing waits for these tasks, so it must not be called in one of them: it would
    wait for itself.
    """

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object] | None] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count the calling task as running code of the user within the block."""
        task = caller()
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    @property
    def have_caller(self) -> bool:
        """Whether the calling task is one of them."""
        return caller() in self._tasks

    def refuse_reading(self) -> None:
        """Raise if a handler reads from the consumer that has called it.

        Raises:
            UsageError: it does.
        """
        if self._tasks and self.have_caller:
            raise UsedInHandler(
                "a handler of run() reads from the consumer that has called it: run() "
                "reads already"
            )
