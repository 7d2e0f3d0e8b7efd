"""Work that ends an object outlives the calls that wait for it."""

import asyncio

import anyio
import pytest

from kafkaio._runtime.ending import Ending


class Thing:
    """Something whose parts are told to go on by the test."""

    def __init__(self) -> None:
        self.ending = Ending("thing")
        self.log: list[str] = []
        self.may_part = asyncio.Event()
        self.may_end = asyncio.Event()

    async def part(self) -> None:
        self.log.append("parts")
        await self.may_part.wait()
        self.log.append("has parted")

    async def end(self) -> None:
        self.log.append("ends")
        await self.may_end.wait()
        self.log.append("has ended")

    async def close(self) -> None:
        await self.ending.begin(self.part, self.end)

    async def closing(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.close())
        await turns()
        return task


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def others() -> int:
    return len(asyncio.all_tasks()) - 1


async def test_both_parts_run_one_after_the_other() -> None:
    thing = Thing()
    thing.may_part.set()
    thing.may_end.set()
    await thing.ending.wait()  # it has not begun
    await thing.close()
    assert thing.log == ["parts", "has parted", "ends", "has ended"]
    await thing.ending.wait()
    assert await others() == 0


async def test_a_cancelled_caller_cuts_the_first_part_and_waits_for_the_second() -> (
    None
):
    thing = Thing()
    closing = await thing.closing()
    closing.cancel()
    await turns()
    assert thing.log == ["parts", "ends"]
    assert not closing.done()
    thing.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log == ["parts", "ends", "has ended"]


@pytest.mark.parametrize("turn", range(1, 5))
async def test_the_second_part_runs_whenever_the_caller_is_cancelled(
    turn: int,
) -> None:
    thing = Thing()
    thing.may_end.set()
    closing = asyncio.create_task(thing.close())
    await turns(turn)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log[-2:] == ["ends", "has ended"]


async def test_a_caller_that_is_cancelled_twice_leaves_it_to_itself() -> None:
    thing = Thing()
    closing = await thing.closing()
    closing.cancel()
    await turns()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert thing.log == ["parts", "ends"]
    again = asyncio.create_task(thing.ending.wait())
    await turns()
    assert not again.done()
    thing.may_end.set()
    await again
    assert thing.log == ["parts", "ends", "has ended"]
    assert await others() == 0


async def test_a_cancelled_scope_waits_for_the_second_part() -> None:
    thing = Thing()
    asyncio.get_running_loop().call_later(0.01, thing.may_end.set)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await thing.close()
    assert thing.log[-2:] == ["ends", "has ended"]


async def test_who_only_waits_cuts_nothing() -> None:
    thing = Thing()
    closing = await thing.closing()
    waiting = asyncio.create_task(thing.ending.wait())
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    thing.may_part.set()
    thing.may_end.set()
    await closing
    assert thing.log == ["parts", "has parted", "ends", "has ended"]


async def test_when_every_task_is_cancelled_the_next_call_finishes_it() -> None:
    thing = Thing()
    closing = await thing.closing()
    for _ in range(2):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await turns()
    assert closing.done()
    assert thing.log == ["parts", "ends"]
    thing.may_end.set()
    await thing.ending.wait()
    assert thing.log == ["parts", "ends", "ends", "has ended"]


async def test_what_is_raised_reaches_whoever_waits() -> None:
    ending = Ending("thing")

    async def fail() -> None:
        raise ZeroDivisionError

    async def end() -> None:
        await ending.wait()  # not for itself

    with pytest.raises(ZeroDivisionError):
        await ending.begin(fail, end)
    with pytest.raises(ZeroDivisionError):
        await ending.wait()
