import asyncio

import pytest

from kafkaio._runtime.observer import guarded
from kafkaio._runtime.watchdog import watch_loop
from tests.virtual_loop import VirtualClockLoop


class Heard:
    def __init__(self) -> None:
        self.blocked: list[float] = []

    def loop_blocked(self, seconds: float) -> None:
        self.blocked.append(seconds)


async def block_twice(heard: Heard) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    watching = asyncio.create_task(watch_loop(guarded(heard)))
    await asyncio.sleep(0.55)
    loop.pass_time(3.0)  # as a blocking call does
    await asyncio.sleep(0.55)
    loop.pass_time(0.05)
    await asyncio.sleep(1.0)
    watching.cancel()


def test_a_blocked_loop_is_told_and_a_slow_turn_is_not() -> None:
    heard = Heard()
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(block_twice(heard))
    [seconds] = heard.blocked
    assert seconds == pytest.approx(2.95)


async def test_without_a_listener_nothing_is_watched() -> None:
    assert await watch_loop(guarded(None)) is None
    assert await watch_loop(guarded(object())) is None
