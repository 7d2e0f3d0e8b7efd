"""Calls a user's handler, for the ``run`` of both consumers and `exactly_once`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from types import CoroutineType
from typing import Any, TypeAlias

from kafkaio._runtime.observer import Observer
from kafkaio.errors import UsageError
from kafkaio.types import AnyRecord

#: A user's handler of one record.
Handler: TypeAlias = Callable[[AnyRecord], Awaitable[object]]


class NotAwaitable(UsageError, TypeError):
    """A handler that is not a coroutine function: every record would fail alike."""


def work_of(
    handler: Callable[[Any], Awaitable[object]], record: AnyRecord
) -> Awaitable[object]:
    """Call a handler.

    Raises:
        UsageError: it returned something that cannot be awaited; also a TypeError.
        Exception: the handler raised before it returned a coroutine.
    """
    # The type is checked first, since `isawaitable` costs more than the rest.
    work = handler(record)
    if type(work) is not CoroutineType and not isawaitable(work):
        raise NotAwaitable(
            f"run() needs a coroutine function: {handler!r} returned {work!r}, which "
            f"cannot be awaited"
        )
    return work


def observed(
    handler: Callable[..., Awaitable[object]], observer: Observer, group: str | None
) -> Callable[..., Awaitable[object]]:
    """Let a handler work within the context manager of an observer, if it has one.

    Args:
        handler: the user's. Its last argument is the record, or the list of records.
        observer: asked for ``handling`` once; without it, the handler is returned.
        group: the consumer group.
    """
    handling = vars(observer).get("handling")
    if handling is None:
        return handler

    async def handle(*arguments: Any) -> None:
        with handling(arguments[-1], group):
            await work_of(partial(handler, *arguments[:-1]), arguments[-1])

    return handle
