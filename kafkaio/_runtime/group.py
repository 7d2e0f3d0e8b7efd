"""A task group that leaves no coroutine behind when the event loop ends.

``asyncio.run`` cancels every task. anyio wraps the coroutine of each child of its task
groups in another one. If the child is cancelled before its first step, only the outer
one ends; the inner one was never awaited, and Python warns of that, by a name that no
user knows. So this group closes the coroutines of its children when it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVarTuple

import anyio

_Args = TypeVarTuple("_Args")

#: Coroutines that have ended are dropped each time so many more have been added.
_MANY = 64


class TaskGroup:
    """The part of anyio's task group that this package uses; see there."""

    __slots__ = ("_children", "_group", "_look_at")

    def __init__(self) -> None:
        self._group = anyio.create_task_group()
        # Some of them have ended: they are dropped from time to time.
        self._children: list[Coroutine[Any, Any, None]] = []
        self._look_at = _MANY

    @property
    def cancel_scope(self) -> anyio.CancelScope:
        """The scope of all children, and of the code in the block."""
        return self._group.cancel_scope

    def start_soon(
        self,
        function: Callable[[*_Args], Coroutine[Any, Any, None]],
        *args: *_Args,
        name: object = None,
    ) -> None:
        """Start a child, which begins to run soon, not now."""
        child = function(*args)
        if len(self._children) >= self._look_at:
            self._children = [one for one in self._children if _is_left(one)]
            self._look_at = 2 * len(self._children) + _MANY
        self._children.append(child)
        name = name or getattr(function, "__qualname__", repr(function))
        self._group.start_soon(lambda: child, name=name)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            return await self._group.__aexit__(kind, error, trace)
        finally:
            for child in self._children:
                child.close()


def _is_left(child: Coroutine[Any, Any, None]) -> bool:
    return getattr(child, "cr_frame", None) is not None
