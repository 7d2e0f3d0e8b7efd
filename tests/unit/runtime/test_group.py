from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import ClosedError


async def nothing() -> None:
    pass


async def forever() -> None:
    await asyncio.sleep(3600)


async def test_the_block_waits_for_its_children() -> None:
    done: list[int] = []

    async def child(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    async with TaskGroup() as group:
        for number in range(100):
            group.start_soon(child, number)
    assert done == [*range(100)]


async def test_children_are_cancelled_with_the_scope() -> None:
    async with TaskGroup() as group:
        group.start_soon(forever, name="waits")
        await asyncio.sleep(0)
        assert "waits" in {task.get_name() for task in asyncio.all_tasks()}
        group.cancel_scope.cancel()


async def test_a_child_that_raises_ends_the_block() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012
        async with TaskGroup() as group:
            group.start_soon(forever)
            group.start_soon(fail)
    assert [str(error) for error in caught.value.exceptions] == ["no"]


def test_a_loop_that_ends_leaves_no_coroutine_behind() -> None:
    async def main() -> None:
        async def work() -> None:
            async with TaskGroup() as group:
                group.start_soon(nothing)
                await forever()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)  # the child has not begun
        assert not task.done()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def test_no_child_is_started_once_the_end_of_the_loop_has_begun() -> None:
    refused: list[ClosedError] = []

    async def main() -> None:
        supervisor = Supervisor("late", lambda _: None)
        supervisor.start()

        async def late() -> None:
            try:
                await forever()
            finally:
                try:
                    supervisor.start_soon(nothing, "too late")
                except ClosedError as error:
                    refused.append(error)

        late_task = asyncio.create_task(late())
        await asyncio.sleep(0)
        assert not late_task.done()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert len(refused) == 1
    assert [str(warning.message) for warning in seen] == []
