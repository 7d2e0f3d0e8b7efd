"""Several attempts at one thing, each begun a moment after the one before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError

__all__ = ["race"]

T = TypeVar("T")


async def race(
    attempts: Iterable[Callable[[], Awaitable[T]]], head_start: float
) -> tuple[list[T], list[KafkaError]]:
    """Run attempts until one succeeds; the others are cancelled then.

    Args:
        attempts: what to try, in order.
        head_start: seconds that each gets before the next begins beside it; none once
            it has failed.

    Returns:
        What the first to succeed brought, or nothing; and the failures before that.
    """
    won: list[T] = []
    failures: list[KafkaError] = []
    progress = Wakeup()

    async def run(attempt: Callable[[], Awaitable[T]]) -> None:
        try:
            won.append(await attempt())
        except KafkaError as error:
            failures.append(error)
        progress.notify()

    async def settled(runners: int, until: float | None) -> None:
        while not won and len(failures) < runners:
            if not await progress.wait(until):
                return

    async with anyio.create_task_group() as group:
        runners = 0
        for attempt in attempts:
            group.start_soon(run, attempt)
            runners += 1
            await settled(runners, now() + head_start)
            if won:
                break
        await settled(runners, None)
        group.cancel_scope.cancel()
    return won, failures
