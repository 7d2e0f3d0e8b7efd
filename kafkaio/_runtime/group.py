"""A group of tasks: a block that ends when all its children have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVarTuple

from kafkaio._runtime.scopes import Cancelled, CancelScope

_Args = TypeVarTuple("_Args")


class TaskGroup:
    """Tasks that belong to a block, and a scope around both.

    If the block, or a child, raises, or a child is cancelled from outside, the others
    are cancelled. The block is left when every child has ended, however often the task
    is cancelled meanwhile. What they raised is raised as an exception group.

    Attributes:
        cancel_scope: the scope of all children, and of the code in the block.
    """

    __slots__ = ("_ended", "_errors", "_tasks", "cancel_scope")

    def __init__(self) -> None:
        self.cancel_scope: CancelScope = CancelScope()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._errors: list[BaseException] = []
        # Done when no child is left; only while the block waits for that.
        self._ended: asyncio.Future[None] | None = None

    def start_soon(
        self,
        function: Callable[[*_Args], Coroutine[Any, Any, None]],
        *args: *_Args,
        name: str | None = None,
    ) -> None:
        """Start a child, which begins to run soon, not now."""
        name = name or getattr(function, "__qualname__", repr(function))
        task = asyncio.get_running_loop().create_task(
            self._run(function, *args), name=name
        )
        self._tasks[task] = None
        task.add_done_callback(self._child_ended)

    async def __aenter__(self) -> Self:
        self.cancel_scope.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        left: BaseException | None = error
        if error is not None:
            self.cancel_scope.cancel()
        try:
            is_told = False
            while self._tasks:
                left = await self._wait(left, shield=is_told)
                is_told = True
            if left is not None and not isinstance(left, Cancelled):
                self._errors.append(left)
            if self._errors:
                left = BaseExceptionGroup("errors in a group of tasks", self._errors)
            if self.cancel_scope.__exit__(
                None if left is None else type(left), left, trace
            ):
                return True
            if left is not error and left is not None:
                raise left from None
            return False
        finally:
            # Its traceback refers to this frame.
            del error, left
            self._errors = []

    async def _run(
        self, function: Callable[[*_Args], Coroutine[Any, Any, None]], *args: *_Args
    ) -> None:
        self.cancel_scope.adopt()
        try:
            await function(*args)
        finally:
            self.cancel_scope.release()

    async def _wait(
        self, left: BaseException | None, *, shield: bool
    ) -> BaseException | None:
        """Wait until no child is left, or for a cancellation.

        Args:
            left: the exception to leave the block with, as far as is known.
            shield: once the children are cancelled, further cancellations of a scope
                would only wake this task again and again.

        Returns:
            The exception to leave the block with now.
        """
        self._ended = asyncio.get_running_loop().create_future()
        try:
            with CancelScope(shield=shield):
                await self._ended
        except Cancelled as cancelled:
            self.cancel_scope.cancel()
            if left is None or isinstance(left, Cancelled):
                return cancelled
        return left

    def _child_ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)
        has_failed = error is not None or task.cancelled()
        if has_failed and not self.cancel_scope.is_cancelled:
            self.cancel_scope.cancel()
        if not self._tasks and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
