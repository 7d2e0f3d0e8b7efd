import asyncio
import threading

import pytest

from kafkaio._runtime.observer import guarded
from kafkaio._runtime.watchdog import _StackSampler, watch_loop
from tests.virtual_loop import VirtualClockLoop


class Heard:
    def __init__(self) -> None:
        self.blocked: list[float] = []

        self.stacks: list[str] = []

    def loop_blocked(self, seconds: float, stack: str) -> None:
        self.blocked.append(seconds)
        self.stacks.append(stack)


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


def watchdogs() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "kafkaio watchdog"]


def they_end() -> bool:
    for witness in watchdogs():
        witness.join(10)
    return not watchdogs()


def the_culprit() -> None:
    """Block until the watchdog has had its look, without giving the loop a turn."""
    [witness] = watchdogs()
    assert isinstance(witness, _StackSampler)
    while not witness.stack:
        pass


async def test_who_blocks_the_loop_is_named() -> None:
    assert they_end()
    heard = Heard()
    watching = asyncio.create_task(watch_loop(guarded(heard)))
    await asyncio.sleep(0)
    the_culprit()
    while not heard.stacks:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert heard.blocked[0] > 0.1
    assert "in the_culprit" in heard.stacks[0]
    assert "test_watchdog.py" in heard.stacks[0]
    watching.cancel()
    await asyncio.wait([watching])
    assert they_end()


async def test_without_a_listener_nothing_is_watched() -> None:
    assert await watch_loop(guarded(None)) is None
    assert await watch_loop(guarded(object())) is None
    assert they_end()
