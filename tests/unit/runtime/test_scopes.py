"""Scopes beside what else cancels a task; `test_scopes_beside_anyio` has the rest."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from threading import Event
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kafkaio._runtime import scopes
from kafkaio._runtime.clock import now
from kafkaio._runtime.group import TaskGroup
from kafkaio._runtime.scopes import CancelScope, FailingScope, move_on_after
from tests.support.loops import REAL_LOOPS
from tests.support.patience import HANGS
from tests.virtual_loop import VirtualClockLoop


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_a_scope_whose_time_is_over_ends_the_first_wait() -> None:
    with move_on_after(-1.0) as scope:
        assert scope.cancel_called
        await asyncio.sleep(0)
        pytest.fail("it went on")
    assert scope.cancelled_caught
    assert this_task().cancelling() == 0


async def test_no_delay_is_no_limit() -> None:
    with move_on_after(None) as scope:
        await asyncio.sleep(0)
    assert scope.deadline == float("inf")


async def test_a_failing_scope_raises() -> None:
    with pytest.raises(TimeoutError), FailingScope(deadline=now()):
        await forever()
    with FailingScope(deadline=now() + HANGS):
        await asyncio.sleep(0)
    with pytest.raises(ValueError, match="own"), FailingScope(deadline=now() + HANGS):
        raise ValueError("own")


async def test_a_deadline_can_be_set_while_it_is_awaited() -> None:
    with CancelScope() as scope:
        scope.deadline = now() + HANGS
        scope.deadline = now() + 0.001
        await forever()
    assert scope.cancelled_caught
    with CancelScope(deadline=now() + 0.001) as scope:
        scope.deadline = float("inf")
        await asyncio.sleep(0.01)
    assert not scope.cancel_called


async def test_many_deadlines_take_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    calls: list[float] = []
    call_at = loop.call_at

    def counting(when: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
        calls.append(when)
        return call_at(when, *rest, **more)

    monkeypatch.setattr(loop, "call_at", counting)
    first = now() + HANGS
    for number in range(1000):
        with CancelScope(deadline=first + number):
            pass
    assert calls == [first]


def test_those_that_outlive_the_earliest_deadline_end_at_their_own() -> None:
    ended: list[tuple[int, float]] = []
    began = 0.0

    async def limited(number: int) -> None:
        with move_on_after(number):
            await forever()
        ended.append((number, now() - began))

    async def main() -> None:
        nonlocal began
        began = now()
        async with TaskGroup() as group:
            for number in (3, 1, 4, 2):
                group.start_soon(limited, number)
        assert not scopes._deadlines[asyncio.get_running_loop()].young

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(main())
    assert ended == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]


def test_closed_loops_are_forgotten() -> None:
    async def limited() -> None:
        with move_on_after(HANGS):
            await asyncio.sleep(0)

    for _ in range(3):
        asyncio.run(limited())
    assert len([loop for loop in scopes._deadlines if loop.is_closed()]) <= 1
    assert not scopes._innermost


async def test_a_scope_is_left_where_it_was_entered() -> None:
    async def steps() -> AsyncIterator[None]:
        with CancelScope():
            yield

    generator = steps()
    with CancelScope() as outer:
        with pytest.raises(RuntimeError):  # noqa: PT012
            await anext(generator)
            outer.__exit__(None, None, None)
        await generator.aclose()
    with CancelScope() as scope:
        async with TaskGroup() as group:

            async def other() -> None:
                with pytest.raises(RuntimeError):
                    scope.__exit__(None, None, None)
                with pytest.raises(RuntimeError):
                    scope.__enter__()

            group.start_soon(other)


async def test_a_scope_that_was_left_cancels_nobody() -> None:
    with CancelScope() as scope:
        pass
    scope.cancel()
    await turns(3)
    assert scope.cancel_called
    assert not scope.cancelled_caught


async def test_it_cancels_again_until_the_block_is_left() -> None:
    swallowed = 0
    with CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        while True:
            try:
                await forever()
            except BaseException:
                swallowed += 1
                if swallowed == 3:
                    raise
    assert scope.cancelled_caught
    assert this_task().cancelling() == 0
    await turns(3)


async def test_a_shield_holds_off_the_scopes_around_it_until_it_is_left() -> None:
    steps: list[str] = []
    with CancelScope() as scope:
        scope.cancel()
        with CancelScope(shield=True):
            await turns(3)
            steps.append("shielded")
        await asyncio.sleep(0)
        steps.append("never")
    assert steps == ["shielded"]


async def test_a_shield_does_not_hold_off_the_task_s_own_cancellation() -> None:
    async def shielded() -> None:
        with CancelScope(shield=True):
            await forever()

    task = asyncio.create_task(shielded())
    await turns(2)
    task.cancel()
    await asyncio.wait([task], timeout=HANGS)
    assert task.cancelled()


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
async def test_a_cancellation_of_the_task_is_not_taken_for_one_of_the_scope(
    order: list[int],
) -> None:
    scope = CancelScope()

    async def limited() -> None:
        with scope:
            await forever()

    task = asyncio.create_task(limited())
    await turns(2)
    for which in order:
        [scope.cancel, task.cancel][which]()
    await asyncio.wait([task], timeout=HANGS)
    assert task.cancelled()
    assert task.cancelling() == 1
    assert not scope.cancelled_caught


async def test_what_the_task_waited_for_is_not_lost() -> None:
    future = asyncio.get_running_loop().create_future()
    scope = CancelScope()
    got: list[int] = []

    async def take() -> None:
        with scope:
            got.append(await future)
            await forever()

    task = asyncio.create_task(take())
    await turns(2)
    future.set_result(1)
    scope.cancel()
    await task
    assert got == [1]


async def test_an_exception_of_cancelled_code_passes() -> None:
    with pytest.raises(ValueError, match="late"), CancelScope() as scope:  # noqa: PT012
        scope.cancel()
        try:
            await forever()
        finally:
            raise ValueError("late")
    assert this_task().cancelling() == 0


async def test_what_a_group_adds_to_its_cancellations_passes() -> None:
    with pytest.raises(ExceptionGroup) as caught, CancelScope() as scope:  # noqa: PT012
        scope.cancel()
        try:
            await forever()
        except BaseException as cancelled:  # noqa: BLE001
            raise BaseExceptionGroup("both", [cancelled, ValueError("other")]) from None
    assert [type(error) for error in caught.value.exceptions] == [ValueError]
    with CancelScope() as scope:
        scope.cancel()
        try:
            await forever()
        except BaseException as cancelled:  # noqa: BLE001
            raise BaseExceptionGroup("only", [cancelled]) from None
    assert scope.cancelled_caught


# ---- loops ---------------------------------------------------------------------------


async def everything() -> list[str]:
    seen: list[str] = []
    with move_on_after(0.001) as scope:
        async with TaskGroup() as group:
            group.start_soon(forever)
            await forever()
    seen.append(f"scope {scope.cancelled_caught}")
    try:
        async with asyncio.timeout(0.001):
            with CancelScope():
                await forever()
    except TimeoutError:
        seen.append("timeout")
    try:
        with CancelScope() as scope:
            async with asyncio.timeout(HANGS):
                scope.cancel()
                await forever()
    except TimeoutError:
        seen.append("never")
    try:
        async with TaskGroup() as group:
            group.start_soon(forever)
            group.start_soon(fail)
    except* ValueError:
        seen.append("group")
    assert this_task().cancelling() == 0
    assert asyncio.all_tasks() == {this_task()}
    return seen


async def fail() -> None:
    raise ValueError


ALL = ["scope True", "timeout", "group"]


@pytest.mark.parametrize("loop", REAL_LOOPS)
@pytest.mark.parametrize("debug", [False, True])
def test_every_loop(loop: str, debug: bool) -> None:
    with (
        warnings.catch_warnings(record=True) as seen,
        asyncio.Runner(loop_factory=REAL_LOOPS[loop], debug=debug) as runner,
    ):
        warnings.simplefilter("always")
        assert runner.run(everything()) == ALL
        gc.collect()
    assert not seen


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks are never eager")
def test_tasks_that_begin_at_once() -> None:
    """The task that starts another one is not cancelled before it waits."""

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        assert await everything() == ALL
        with CancelScope() as scope:

            async def cancel() -> None:
                scope.cancel()

            task = asyncio.create_task(cancel())
            assert task.done()
        await asyncio.sleep(0)
        assert this_task().cancelling() == 0
        async with TaskGroup() as group:
            group.start_soon(cancel)
        with pytest.raises(ExceptionGroup):  # noqa: PT012
            async with TaskGroup() as group:
                group.start_soon(fail)
                await forever()

    asyncio.run(main())


# ---- anyio in the same program -------------------------------------------------------


async def test_a_scope_of_anyio_passes_through() -> None:
    with anyio.move_on_after(0.001) as theirs:
        with CancelScope() as ours:
            await forever()
        pytest.fail("ours caught it")
    assert theirs.cancelled_caught
    assert not ours.cancelled_caught


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
async def test_a_scope_of_anyio_is_cancelled_together_with_ours(
    order: list[int],
) -> None:
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as theirs:
        with CancelScope() as ours:
            for which in order:
                loop.call_soon([theirs.cancel, ours.cancel][which])
            await forever()
        await forever()
    assert theirs.cancelled_caught
    assert this_task().cancelling() == 0


async def test_our_scope_around_one_of_anyio() -> None:
    with CancelScope() as ours:
        with anyio.CancelScope() as theirs:
            ours.cancel()
            await forever()
        pytest.fail("theirs caught it")
    assert ours.cancelled_caught
    assert not theirs.cancelled_caught
    assert this_task().cancelling() == 0


async def test_our_shield_holds_off_a_scope_of_anyio() -> None:
    steps: list[str] = []
    with anyio.CancelScope() as theirs:
        theirs.cancel()
        with CancelScope(shield=True):
            await turns(3)
            steps.append("shielded")
        await forever()
    assert steps == ["shielded"]
    assert this_task().cancelling() == 0


async def test_a_shield_of_anyio_holds_off_our_scope_inside_which_it_stands() -> None:
    steps: list[str] = []
    with CancelScope() as ours:
        with anyio.CancelScope(shield=True):
            ours.cancel()
            await turns(3)
            steps.append("shielded")
        await forever()
    assert steps == ["shielded"]
    assert ours.cancelled_caught
    with anyio.CancelScope(shield=True), CancelScope() as ours:
        ours.cancel()
        await forever()
    assert ours.cancelled_caught


async def test_a_group_of_anyio_in_our_scope_ends_its_children() -> None:
    tidied: list[int] = []

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await turns(3)
                tidied.append(1)

    with CancelScope() as ours:
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            group.start_soon(child)
            await turns(2)
            ours.cancel()
    assert tidied == [1, 1]
    assert ours.cancelled_caught
    assert this_task().cancelling() == 0


async def test_a_thread_of_anyio_is_waited_for() -> None:
    loop = asyncio.get_running_loop()
    release, ended = Event(), Event()

    def work(cancel: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(cancel)
        loop.call_soon_threadsafe(loop.call_soon, release.set)
        release.wait(HANGS)
        ended.set()

    with CancelScope() as ours:
        await anyio.to_thread.run_sync(work, ours.cancel)
        await forever()
    assert ended.is_set()
    assert ours.cancelled_caught


@pytest.mark.parametrize("cancel", [lambda scope: scope.cancel(), None])
async def test_a_child_of_a_group_in_a_shield_of_anyio(
    cancel: Callable[[CancelScope], None] | None,
) -> None:
    tidied: list[int] = []

    async def child() -> None:
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(0.005)
            tidied.append(1)
        await forever()

    with move_on_after(HANGS if cancel else 0.001) as scope:
        async with TaskGroup() as group:
            group.start_soon(child)
            await turns(2)
            if cancel is not None:
                cancel(scope)
    assert tidied == [1]
    assert scope.cancelled_caught
