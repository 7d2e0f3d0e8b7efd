"""The laws of the supervisor: every task has an owner, and no crash is swallowed."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from kafkaio._runtime.scopes import CancelScope
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


async def in_a_callback(call: Callable[[], object]) -> None:
    """Call a function where no task is current, and wait until that was done."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def callback() -> None:
        try:
            assert asyncio.current_task() is None
            call()
        except BaseException as error:  # noqa: BLE001  (raised by the caller)
            done.set_exception(error)
        else:
            done.set_result(None)

    asyncio.get_running_loop().call_soon(callback)
    await done


@pytest.fixture
def anyio_knows_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where sniffio can be imported, and with every anyio before 4.12.

    What anyio asks for the library that runs says "none" outside of tasks.
    """

    def ask() -> str:
        if asyncio.current_task() is None:
            raise RuntimeError("anyio was called where no task is current")
        return "asyncio"

    module = anyio._core._eventloop
    for name in ("current_async_library", "sniffio"):
        if hasattr(module, name):
            value = ask if name == "current_async_library" else Sniffio(ask)
            monkeypatch.setattr(module, name, value)


class Sniffio:
    def __init__(self, ask: Callable[[], str]) -> None:
        self.current_async_library = ask


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


@pytest.mark.usefixtures("anyio_knows_no_loop")
async def test_children_can_be_started_where_no_task_is_current() -> None:
    ran = []

    async def note() -> None:
        ran.append(1)
        await forever()

    thing = Object()
    await in_a_callback(lambda: thing.supervisor.start(note))
    await in_a_callback(lambda: thing.supervisor.start_soon(note, "noting"))
    await turns()
    assert ran == [1, 1]
    await in_a_callback(thing.supervisor.cancel)
    await thing.supervisor.aclose()
    assert not others()
    assert thing.crashes == []


@pytest.mark.usefixtures("anyio_knows_no_loop")
async def test_the_fixture_knows_the_fault() -> None:
    anyio.CancelScope()
    with pytest.raises(RuntimeError, match="no task is current"):
        await in_a_callback(anyio.CancelScope)


@pytest.mark.usefixtures("anyio_knows_no_loop")
async def test_a_task_scope_is_made_and_cancelled_anywhere() -> None:
    scopes: list[CancelScope] = []
    await in_a_callback(lambda: scopes.append(CancelScope()))
    [scope] = scopes
    asyncio.get_running_loop().call_soon(scope.cancel)
    with scope:
        await forever()
        pytest.fail("it was not cancelled")


async def test_a_task_scope_that_is_cancelled_early_cancels_when_it_is_entered() -> (
    None
):
    scope = CancelScope()
    scope.cancel()
    with scope:
        await forever()
        pytest.fail("it was not cancelled")


async def test_children_can_be_started_in_callbacks_of_every_kind() -> None:
    ran = []
    loop = asyncio.get_running_loop()
    async with Object() as thing:

        def launch(kind: str) -> None:
            async def note() -> None:
                ran.append(kind)

            thing.supervisor.start_soon(note, kind)

        loop.call_later(0, launch, "timer")
        await asyncio.to_thread(loop.call_soon_threadsafe, launch, "thread")
        future: asyncio.Future[None] = loop.create_future()
        future.add_done_callback(lambda _: launch("future"))
        future.set_result(None)
        await turns()
        assert sorted(ran) == ["future", "thread", "timer"]


async def test_a_child_cancelled_before_its_first_turn_is_a_crash() -> None:
    async with Object() as thing:
        thing.supervisor.start_soon(forever, "early")
        [child] = [t for t in others() if "early" in t.get_name()]
        child.cancel()
        with pytest.raises(ClosedError, match="early was cancelled from outside"):
            await thing.wait()
    assert not others()


async def test_a_callback_that_raises_is_a_crash() -> None:
    called = []

    def crash() -> None:
        raise ConnectionError("gone")

    async with Object(forever) as thing:
        thing.supervisor.call_soon(crash)
        thing.supervisor.call_soon(lambda: called.append("after the end"))
        with pytest.raises(ConnectionError, match="gone"):
            await thing.wait()
    assert called == []
    assert len(thing.crashes) == 1


async def test_a_callback_is_called_in_the_next_turn() -> None:
    called = []
    async with Object() as thing:
        thing.supervisor.call_soon(lambda: called.append(1))
        assert called == []
        await turns(1)
        assert called == [1]


async def test_a_child_is_cancelled_until_it_ends_but_not_where_it_is_shielded() -> (
    None
):
    steps = []

    async def stubborn() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            steps.append("first")
        with anyio.CancelScope(shield=True):
            await turns(5)
            steps.append("shielded")
        await forever()

    async with Object(stubborn) as thing:
        await turns()
        await thing.supervisor.aclose()
    assert steps == ["first", "shielded"]
    assert not others()
    assert thing.crashes == []


def test_the_loops_end_reports_nothing_but_the_crash() -> None:
    reports: list[dict[str, Any]] = []
    crashes: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        supervisor = Supervisor("object", crashes.append)
        supervisor.start(forever, slow_to_leave)
        await turns()
        supervisor.start_soon(forever, "not begun")

    asyncio.run(main())
    gc.collect()
    assert [type(cause) for cause in crashes] == [ClosedError]
    assert reports == []
