"""What ``async for`` drives: one record after the other out of a handout.

The compiled stream is its own awaitable. While records are at hand, a step of the loop
makes no coroutine, future or task with it, and one coroutine that never suspends with
the plain one, which says what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, Self

from kafkaio._records._impl import ACCELERATED
from kafkaio.types import Record

__all__ = ["PlainStream", "RecordStream"]


class Taker(Protocol):
    """What records are taken from."""

    def take(self) -> Record | None:
        """The next record; None where the long way has to be gone."""
        ...


class PlainStream:
    """The asynchronous iterator over what a `Handout` takes.

    Args:
        handout: asked first, without waiting.
        wait: goes the long way to the next record, where the handout has none.
    """

    __slots__ = ("_handout", "_wait")

    def __init__(
        self, handout: Taker, wait: Callable[[], Coroutine[Any, Any, Record]]
    ) -> None:
        self._handout = handout
        self._wait = wait

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        """The next record. If cancelled, none was taken."""
        record = self._handout.take()
        return await self._wait() if record is None else record


if TYPE_CHECKING or not ACCELERATED:
    RecordStream = PlainStream
else:
    from kafkaio._records._impl import RecordStream
