import asyncio
import time

import pytest

from kafkaio._runtime import clock
from kafkaio._runtime.wakeup import Wakeup


async def test_a_notification_before_the_wait_is_kept_and_used_up() -> None:
    wakeup = Wakeup()
    wakeup.notify()
    wakeup.notify()
    assert await wakeup.wait(None)
    assert not await wakeup.wait(clock.now())


async def test_a_notification_ends_the_wait() -> None:
    wakeup = Wakeup()
    asyncio.get_running_loop().call_soon(wakeup.notify)
    assert await wakeup.wait(clock.now() + 60)


async def test_the_deadline_ends_the_wait() -> None:
    wakeup = Wakeup()
    until = clock.now() + 0.005
    assert not await wakeup.wait(until)
    # A timer may be early by the resolution of the loop's clock.
    assert clock.now() >= until - time.get_clock_info("monotonic").resolution


async def test_a_waiter_that_notifies_itself_starves_nobody() -> None:
    wakeup, turns = Wakeup(), 0

    def turn() -> None:
        nonlocal turns
        turns += 1

    for _ in range(10):
        wakeup.notify()
        asyncio.get_running_loop().call_soon(turn)
        await wakeup.wait(None)
    assert turns == 10


async def test_a_cancelled_waiter_loses_no_notification() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(None))
    await asyncio.sleep(0)
    wakeup.notify()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await wakeup.wait(clock.now())


async def test_there_is_one_waiter() -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(None))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="another task waits"):
        await wakeup.wait(None)
    wakeup.notify()
    assert await waiting


async def test_the_clock_and_the_dice() -> None:
    assert clock.now() <= clock.now()
    assert abs(clock.wall_ms() / 1000 - time.time()) < 5
    assert all(0 <= clock.roll() < 1 for _ in range(100))
