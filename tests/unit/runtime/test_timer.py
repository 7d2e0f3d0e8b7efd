"""One timer, set again and again, on every event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from math import inf

import pytest

from kafkaio._runtime.clock import now
from kafkaio._runtime.timer import Timer
from tests.support.loops import REAL_LOOPS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "loop_factory" in metafunc.fixturenames:
        metafunc.parametrize(
            "loop_factory", list(REAL_LOOPS.values()), ids=list(REAL_LOOPS)
        )


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def run(loop_factory: LoopFactory, work: Callable[[], object]) -> list[object]:
    """Run on a loop; return what its exception handler was told."""
    told: list[object] = []

    def tell(_: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        told.append(context.get("exception"))

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(tell)  # type: ignore[arg-type]
        await work()  # type: ignore[misc]

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    return told


@pytest.mark.parametrize("first", [-1.0, 0.0, 1e-9, 0.0001, 0.00049, 0.0005, 0.001])
def test_a_time_close_by_can_be_set_again(
    loop_factory: LoopFactory, first: float
) -> None:
    fired: list[float] = []

    async def work() -> None:
        done = asyncio.Event()

        def fire() -> None:
            fired.append(timer.when)
            done.set()

        timer = Timer(fire)
        at = now()
        timer.set(at + first)
        timer.set(at + 60)  # later: changes nothing
        assert timer.when == at + first
        timer.set(at + first - 0.0001)
        assert timer.when == at + first - 0.0001
        await done.wait()

    assert run(loop_factory, work) == []
    assert fired == [inf]  # once, and unset when it is called


def test_the_earliest_time_counts(loop_factory: LoopFactory) -> None:
    async def work() -> None:
        done = asyncio.Event()
        timer, began = Timer(done.set), now()
        for seconds in (60.0, 0.02, 30.0, inf):
            timer.set(began + seconds)
        await done.wait()
        assert now() - began < 20

    assert run(loop_factory, work) == []


def test_a_cancelled_timer_does_not_fire_and_can_be_set_again(
    loop_factory: LoopFactory,
) -> None:
    async def work() -> None:
        fired = asyncio.Event()
        timer = Timer(fired.set)
        for seconds in (0.0, 0.0001, 0.001):
            timer.set(now() + seconds)
            timer.cancel()
            timer.cancel()
            assert timer.when == inf
        await asyncio.sleep(0.01)
        assert not fired.is_set()
        timer.set(now())
        await fired.wait()

    assert run(loop_factory, work) == []


def test_a_callback_may_set_it(loop_factory: LoopFactory) -> None:
    async def work() -> None:
        done = asyncio.Event()
        count = 0

        def fire() -> None:
            nonlocal count
            count += 1
            if count == 20:
                done.set()
            else:
                timer.set(now() + 0.0002)

        timer = Timer(fire)
        timer.set(now() + 0.0002)
        await done.wait()

    assert run(loop_factory, work) == []
