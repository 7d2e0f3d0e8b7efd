"""When busy tasks let the event loop run."""

from __future__ import annotations

import asyncio

from kafkaio._runtime.time_slice import SLICE, TimeSlice


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self.soon()

    def soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self.count += 1
        self.soon()


async def test_a_slice_ends():
    time = Time()
    slice_ = TimeSlice(time)
    assert slice_.is_over
    slice_.renew()
    assert not slice_.is_over
    time.now += SLICE
    assert slice_.is_over


async def test_the_loop_gets_a_turn():
    time = Time()
    slice_, turns = TimeSlice(time), Turns()
    slice_.renew()
    time.now += SLICE
    await slice_.give_way()
    assert turns.count == 1
    assert not slice_.is_over


async def test_a_loop_that_was_blocked_gets_enough_for_a_heartbeat():
    time = Time()
    slice_, turns = TimeSlice(time), Turns()
    slice_.renew()
    time.now += 1
    await slice_.give_way()
    assert turns.count == 8
    time.now += 1
    await slice_.take_turn()
    assert turns.count >= 16


async def test_a_shared_slice_is_begun_once_in_a_turn():
    time = Time()
    slice_ = TimeSlice(time)
    slice_.woken()
    assert not slice_.is_over
    time.now += 1
    slice_.woken()
    assert slice_.is_over
    await asyncio.sleep(0)
    slice_.woken()
    assert not slice_.is_over


async def busy(
    slice_: TimeSlice, time: Time, log: list[tuple[str, int]], turns: Turns, name: str
) -> None:
    slice_.woken()
    for _ in range(4):
        if slice_.is_over:
            await slice_.take_turn()
        log.append((name, turns.count))
        time.now += 1  # it blocks the loop


async def test_tasks_that_block_go_on_one_in_a_turn_and_in_order():
    time, log = Time(), list[tuple[str, int]]()
    slice_, turns = TimeSlice(time), Turns()
    await asyncio.gather(*(busy(slice_, time, log, turns, n) for n in "abc"))
    names = "".join(name for name, _ in log)
    assert names[:9] == "aabcabcab"
    assert sorted(names) == sorted("abc" * 4)
    times = [turn for _, turn in log]
    assert len(set(times)) == len(times)


async def test_a_task_that_is_cancelled_keeps_no_other():
    time, log = Time(), list[tuple[str, int]]()
    slice_, turns = TimeSlice(time), Turns()
    one, two = (
        asyncio.create_task(busy(slice_, time, log, turns, name)) for name in "ab"
    )
    while len(log) < 3:  # noqa: ASYNC110  (turns are what it is about)
        await asyncio.sleep(0)
    one.cancel()
    await asyncio.wait([one])
    assert one.cancelled()
    await two
    assert sum(name == "b" for name, _ in log) == 4


async def test_who_is_woken_waits_for_those_who_gave_way():
    time, log = Time(), list[tuple[str, int]]()
    slice_, turns = TimeSlice(time), Turns()
    first = asyncio.create_task(busy(slice_, time, log, turns, "a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.gather(first, busy(slice_, time, log, turns, "b"))
    assert [name for name, _ in log][:4] == ["a", "a", "b", "a"]
