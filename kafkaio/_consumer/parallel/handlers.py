"""Calls a user's handler of one record, for the ``run`` of both consumers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import CoroutineType
from typing import Any, TypeAlias

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
