"""A task goes on within `set_result`, and everything else is as of a plain future."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

import pytest

from kafkaio._runtime.prompt import PromptFuture


def made() -> PromptFuture[int]:
    return PromptFuture(loop=asyncio.get_running_loop())


async def waiting(future: PromptFuture[int], steps: list[str]) -> asyncio.Task[None]:
    """Start a task that notes how the future has ended; return once it waits."""

    async def wait() -> None:
        try:
            steps.append(f"got {await future}")
        except ArithmeticError:
            steps.append("failed")

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    return task


async def in_callback(step: Callable[[], object]) -> None:
    """Run a step in a callback of the loop, where no task runs."""
    done = asyncio.get_running_loop().create_future()

    def call() -> None:
        step()
        done.set_result(None)

    asyncio.get_running_loop().call_soon(call)
    await done


async def test_the_task_goes_on_within_the_call() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)

    def answer() -> None:
        future.set_result(3)
        steps.append("returned")

    await in_callback(answer)
    assert steps == ["got 3", "returned"]
    await task


async def test_a_task_that_sets_the_result_is_not_interrupted() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)
    future.set_result(3)
    steps.append("returned")
    await task
    assert steps == ["returned", "got 3"]


async def test_what_is_set_later_runs_nothing_at_once() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)

    def answer() -> None:
        future.set_result_later(3)
        steps.append("returned")

    await in_callback(answer)
    await task
    assert steps == ["returned", "got 3"]


async def test_an_exception_comes_in_the_next_iteration() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)

    def fail() -> None:
        future.set_exception(ArithmeticError())
        steps.append("returned")

    await in_callback(fail)
    await task
    assert steps == ["returned", "failed"]


async def test_a_result_that_came_before_is_there_at_once() -> None:
    future = made()
    future.set_result(3)
    assert await future == 3


async def test_a_task_that_is_cancelled_cancels_it() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()
    assert not future.cancel()
    assert not steps


async def test_a_cancellation_after_the_result_ends_the_task() -> None:
    future, steps = made(), list[str]()
    task = await waiting(future, steps)
    future.set_result(3)  # by a task: the other one has not run yet
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not steps


async def test_two_tasks_get_the_result() -> None:
    future, steps = made(), list[str]()
    tasks = [await waiting(future, steps) for _ in range(2)]
    await in_callback(lambda: future.set_result(3))
    await asyncio.gather(*tasks)
    assert steps == ["got 3", "got 3"]


async def test_a_task_in_a_context_that_is_entered_goes_on_later() -> None:
    future, steps = made(), list[str]()
    context = contextvars.copy_context()

    async def wait() -> None:
        steps.append(f"got {await future}")

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(wait(), context=context)
    await asyncio.sleep(0)

    def answer() -> None:
        future.set_result(3)
        steps.append("returned")

    loop.call_soon(answer, context=context)
    await task
    assert steps == ["returned", "got 3"]


async def test_callbacks_of_others_come_in_the_next_iteration() -> None:
    future, steps = made(), list[str]()

    def ignored(_: object) -> None:
        steps.append("removed")

    def noted(_: object) -> None:
        steps.append("called")

    future.add_done_callback(ignored)
    future.add_done_callback(noted)
    assert future.remove_done_callback(ignored) == 1
    await in_callback(lambda: (future.set_result(3), steps.append("returned")))
    await asyncio.sleep(0)
    assert steps == ["returned", "called"]


async def test_the_step_of_a_task_can_be_removed() -> None:
    future, steps = made(), list[str]()
    context = contextvars.copy_context()

    def step(_: object) -> None:
        steps.append("stepped")

    future.add_done_callback(step, context=context)
    assert future.remove_done_callback(step) == 1
    await in_callback(lambda: future.set_result(3))
    assert not steps


def test_an_exit_ends_the_loop_and_not_the_caller() -> None:
    steps = list[str]()

    async def leave(future: PromptFuture[int]) -> None:
        await future
        raise SystemExit(7)

    loop = asyncio.new_event_loop()
    future: PromptFuture[int] = PromptFuture(loop=loop)
    task = loop.create_task(leave(future))

    def answer() -> None:
        future.set_result(3)
        steps.append("returned")

    loop.call_later(0.01, answer)
    with pytest.raises(SystemExit):
        loop.run_forever()
    assert steps == ["returned"]
    assert isinstance(task.exception(), SystemExit)
    loop.close()
