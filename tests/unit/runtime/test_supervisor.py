"""The laws of the supervisor: every task has an owner, and no crash is swallowed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import ClosedError


class Object:
    """What owns a supervisor: fails its waiters when it crashes."""

    def __init__(self, *children: Callable[[], Any]) -> None:
        self.crashes: list[BaseException] = []
        self.crashed: asyncio.Future[None] | None = None
        self.supervisor = Supervisor("object", self.on_crash)
        self.children = children

    def on_crash(self, cause: BaseException) -> None:
        self.crashes.append(cause)
        if self.crashed is not None and not self.crashed.done():
            self.crashed.set_exception(cause)
            self.crashed.exception()  # retrieved: not every test waits for it

    async def __aenter__(self) -> "Object":
        self.crashed = asyncio.get_running_loop().create_future()
        self.supervisor.start(*self.children)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.aclose()

    async def wait(self) -> None:
        assert self.crashed is not None
        await self.crashed


async def forever() -> None:
    await anyio.sleep_forever()


async def fail() -> None:
    raise ConnectionError("gone")


async def quick() -> None:
    return


async def slow_to_leave() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            for _ in range(5):
                await asyncio.sleep(0)


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def in_a_fixture() -> AsyncIterator[Object]:
    # Set up in one task and torn down in another: a task group entered by
    # __aenter__ itself would fail here.
    async with Object(forever) as thing:
        yield thing


async def test_works_inside_a_fixture(in_a_fixture: Object) -> None:
    assert in_a_fixture.supervisor.is_running


async def test_a_crash_reaches_the_waiter_as_it_was_raised() -> None:
    async with Object(forever, fail) as thing:
        with pytest.raises(ConnectionError, match="gone"):
            await thing.wait()
    assert [type(cause) for cause in thing.crashes] == [ConnectionError]
    assert not others()


async def test_a_crash_ends_the_other_children() -> None:
    async with Object(forever, slow_to_leave) as thing:
        thing.supervisor.start_soon(fail, "failing")
        await turns(20)
        assert not others()
        assert not thing.supervisor.is_running
        with pytest.raises(ClosedError, match="not running"):
            thing.supervisor.start_soon(quick, "late")


async def test_only_the_first_crash_is_told() -> None:
    async with Object(fail, fail) as thing:
        await turns()
    assert len(thing.crashes) == 1


async def test_a_child_that_ends_is_no_crash() -> None:
    async with Object(quick) as thing:
        await turns()
        assert thing.supervisor.is_running
        assert "running | 0 children" in repr(thing.supervisor)
        ran: list[str] = []

        async def note() -> None:
            task = asyncio.current_task()
            assert task is not None
            ran.append(task.get_name())

        thing.supervisor.start_soon(note, "noting")
        await turns()
    assert ran == ["object: noting"]
    assert thing.crashes == []


async def test_children_can_be_started_before_the_first_turn() -> None:
    ran = []

    async def note() -> None:
        ran.append(1)

    async with Object() as thing:
        thing.supervisor.start_soon(note, "noting")
        await turns()
    assert ran == [1]


async def test_close_leaves_no_task() -> None:
    async with Object(forever, slow_to_leave):
        await turns()
    assert not others()


async def test_close_before_the_first_turn() -> None:
    ran = []

    async def note() -> None:
        ran.append(1)

    supervisor = Supervisor("object", pytest.fail)
    supervisor.start(note)
    await supervisor.aclose()
    assert not others()


async def test_close_may_be_repeated_and_come_first() -> None:
    supervisor = Supervisor("object", pytest.fail)
    await supervisor.aclose()
    with pytest.raises(ClosedError):
        supervisor.start(forever)
    async with Object(forever) as thing:
        await thing.supervisor.aclose()
        await thing.supervisor.aclose()
        with pytest.raises(ClosedError, match="started before"):
            thing.supervisor.start()


async def test_start_soon_needs_a_start() -> None:
    with pytest.raises(ClosedError):
        Supervisor("object", pytest.fail).start_soon(forever, "x")


async def test_users_cancellation_inside_the_block() -> None:
    async def user() -> None:
        async with Object(forever, slow_to_leave) as thing:
            await thing.wait()

    task = asyncio.create_task(user())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not others()


async def test_users_timeout_inside_the_block() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001), Object(forever) as thing:
            await thing.wait()
    assert not others()


async def test_a_cancelled_close_leaves_no_task() -> None:
    thing = Object(slow_to_leave)
    await thing.__aenter__()
    await turns()
    closing = asyncio.create_task(thing.supervisor.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await turns(20)
    assert not others()
    assert thing.crashes == []


async def test_grace_lets_children_finish() -> None:
    finished = []

    async def work() -> None:
        await turns(5)
        finished.append(1)

    thing = Object(work)
    await thing.__aenter__()
    await thing.supervisor.aclose(grace=5)
    assert finished == [1]
    assert not others()


async def test_grace_is_bounded() -> None:
    thing = Object(forever)
    await thing.__aenter__()
    await thing.supervisor.aclose(grace=0.001)
    assert not others()
    assert thing.crashes == []


async def test_a_close_cancelled_in_its_grace_still_ends_all() -> None:
    thing = Object(forever)
    await thing.__aenter__()
    closing = asyncio.create_task(thing.supervisor.aclose(grace=60))
    await turns()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await turns(20)
    assert not others()


async def test_a_crash_during_grace_is_told() -> None:
    async def late_crash() -> None:
        await turns(5)
        await fail()

    thing = Object(late_crash)
    await thing.__aenter__()
    await thing.supervisor.aclose(grace=5)
    assert len(thing.crashes) == 1


async def test_a_child_may_close_its_own_supervisor() -> None:
    thing = Object()

    async def close() -> None:
        await thing.supervisor.aclose(grace=60)
        await forever()

    async with thing:
        thing.supervisor.start_soon(close, "closing")
        await turns(20)
        assert not others()
    assert thing.crashes == []


async def test_a_child_cancelled_from_outside_is_a_crash() -> None:
    async with Object(forever) as thing:
        await turns()
        [child] = [t for t in others() if "forever" in t.get_name()]
        child.cancel()
        with pytest.raises(ClosedError, match="forever was cancelled from outside"):
            await thing.wait()
    assert not others()


async def test_a_host_cancelled_from_outside_is_a_crash() -> None:
    async with Object() as thing:
        await turns()
        [host] = others()
        host.cancel()
        with pytest.raises(ClosedError, match="cancelled from outside"):
            await thing.wait()
    assert not others()


async def test_closing_a_host_that_was_cancelled_is_no_cancellation() -> None:
    thing = Object(slow_to_leave)
    await thing.__aenter__()
    await turns()
    [host] = [t for t in others() if t.get_name() == "object"]
    host.cancel()
    await thing.supervisor.aclose()
    assert not others()


async def test_an_on_crash_that_raises_does_not_keep_children() -> None:
    def broken(_: BaseException) -> None:
        raise ValueError("oops")

    reports: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context))
    supervisor = Supervisor("object", broken)
    supervisor.start(forever, fail)
    await turns(20)
    assert not others()
    assert isinstance(reports[0]["exception"], ValueError)
    await supervisor.aclose()


def test_the_loops_end_is_survived() -> None:
    crashes: list[BaseException] = []

    async def main() -> None:
        Supervisor("object", crashes.append).start(forever)
        await asyncio.sleep(0)

    asyncio.run(main())  # cancels what is left
    assert [type(cause) for cause in crashes] == [ClosedError]
