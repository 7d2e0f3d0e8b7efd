import asyncio
import gc
import importlib.metadata
import threading
import weakref

import anyio
import pytest

from kafkaio._runtime.caller import caller, when_done
from kafkaio._runtime.thread import LoopThread
from kafkaio.errors import ClosedError
from tests.support.patience import HANGS


async def test_calls_cross_there_and_home() -> None:
    here, outer = asyncio.get_running_loop(), threading.get_ident()
    thread = LoopThread("x")
    assert not thread.is_running
    thread.start()
    assert thread.is_running
    assert not thread.is_inside

    async def at_home() -> int:
        assert asyncio.get_running_loop() is here
        return threading.get_ident()

    async def there() -> int:
        assert asyncio.get_running_loop() is not here
        assert thread.is_inside
        return await thread.call_owner(at_home)

    assert await thread.call(there) == outer
    assert thread.call_blocking(threading.get_ident) != outer
    await thread.aclose()
    assert not thread.is_running
    assert "x" not in {each.name for each in threading.enumerate()}
    await thread.aclose()


async def test_what_is_raised_comes_out() -> None:
    thread = LoopThread("x")
    thread.start()

    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await thread.call(fail)
    with pytest.raises(ValueError, match="invalid literal"):
        thread.call_blocking(lambda: int("x"))
    await thread.aclose()


async def test_a_cancelled_call_has_ended_there_too() -> None:
    thread = LoopThread("x")
    thread.start()
    begun, log = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0.01)
            log.append("ended")

    calling = asyncio.create_task(thread.call(work))
    while not begun.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0)
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    assert log == ["ended"]
    await thread.aclose()


async def test_a_call_that_is_cancelled_at_once() -> None:
    thread = LoopThread("x")
    thread.start()
    calling = asyncio.create_task(thread.call(lambda: asyncio.sleep(3600)))
    await asyncio.sleep(0)
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    await thread.aclose()


async def test_closing_ends_the_calls_under_way() -> None:
    thread = LoopThread("x")
    thread.start()
    calls = [
        asyncio.create_task(thread.call(lambda: asyncio.sleep(3600))) for _ in range(3)
    ]
    await asyncio.sleep(0.01)
    await thread.aclose()
    await asyncio.wait(calls)
    assert [type(call.exception()) for call in calls] == [ClosedError] * 3
    with pytest.raises(ClosedError):
        await thread.call(lambda: asyncio.sleep(0))
    with pytest.raises(ClosedError):
        thread.call_blocking(int)


async def test_it_starts_once_and_may_never_start() -> None:
    idle = LoopThread("x")
    await idle.aclose()
    thread = LoopThread("x")
    thread.start()
    with pytest.raises(ClosedError):
        thread.start()
    await thread.aclose()
    with pytest.raises(ClosedError):
        thread.start()


async def test_a_call_cancelled_by_who_knows_whom() -> None:
    thread = LoopThread("x")
    thread.start()

    async def suicide() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(3600)

    with pytest.raises(ClosedError):
        await thread.call(suicide)
    await thread.aclose()


async def test_a_thread_that_hangs_is_left_to_itself() -> None:
    thread = LoopThread("x")
    thread.start()
    let_go, hanging = threading.Event(), threading.Event()

    def hang() -> None:
        hanging.set()
        let_go.wait()

    asking = asyncio.create_task(asyncio.to_thread(thread.call_blocking, hang))
    while not hanging.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0)
    await thread.aclose(0.01)
    let_go.set()
    await asking


async def test_who_called_is_known_over_there() -> None:
    thread = LoopThread("x")
    thread.start()
    me = asyncio.current_task()
    assert caller() is me

    async def who() -> object:
        return caller()

    async def home_again() -> object:
        return await thread.call_owner(who)

    assert await thread.call(who) is me

    async def in_a_task_of_its_own() -> bool:
        task = asyncio.create_task(who())
        return await task is task

    assert await thread.call(home_again) is me
    assert await thread.call(in_a_task_of_its_own)
    await thread.aclose()


async def test_the_end_of_a_task_is_told_in_the_loop_that_asks() -> None:
    thread = LoopThread("x")
    thread.start()
    go, heard = asyncio.Event(), threading.Event()
    idents: list[int] = []
    task = asyncio.create_task(go.wait())

    def hear() -> None:
        idents.append(threading.get_ident())
        heard.set()

    thread.call_blocking(lambda: when_done(task, hear))
    own = asyncio.Event()
    when_done(task, own.set)
    go.set()
    await own.wait()
    await asyncio.to_thread(heard.wait)
    assert idents == [thread.call_blocking(threading.get_ident)]
    await thread.aclose()


async def test_a_call_that_is_cancelled_again_has_ended_there_too() -> None:
    thread = LoopThread("x")
    thread.start()
    begun, may_end, log = threading.Event(), threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            with anyio.CancelScope(shield=True):
                while not may_end.is_set():  # noqa: ASYNC110  (of another thread)
                    await asyncio.sleep(0.001)
            log.append("ended")

    call = asyncio.create_task(thread.call(work))
    await asyncio.to_thread(begun.wait)
    for _ in range(3):
        call.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
    assert not call.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert log == ["ended"]
    await thread.aclose()


class Argument:
    """Something that a call refers to."""


ANYIO = tuple(map(int, importlib.metadata.version("anyio").split(".")[:2]))


@pytest.mark.parametrize("how", ["raises", "is cancelled"])
async def test_nothing_of_a_call_waits_for_the_garbage_collector(how: str) -> None:
    thread = LoopThread("x")
    thread.start()
    begun = threading.Event()

    async def work(argument: Argument) -> None:
        begun.set()
        if how == "raises":
            raise ZeroDivisionError(argument)
        await asyncio.sleep(3600)

    async def call(argument: Argument) -> None:
        await thread.call(lambda: work(argument))

    argument = Argument()
    reference = weakref.ref(argument)
    gc.collect()
    gc.disable()
    try:
        task = asyncio.create_task(call(argument))
        del argument
        await asyncio.to_thread(begun.wait)
        if how == "is cancelled":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or isinstance(task.exception(), ZeroDivisionError)
        del task
        if ANYIO < (4, 9):  # keeps exceptions that its task groups have seen
            gc.collect()
        async with asyncio.timeout(HANGS):
            while reference() is not None:  # noqa: ASYNC110  (of another thread)
                await asyncio.sleep(0.001)
    finally:
        gc.enable()
    await thread.aclose()


async def test_a_thread_ends_though_closing_it_is_cancelled() -> None:
    thread = LoopThread("x")
    thread.start()
    before = asyncio.all_tasks()
    closing = asyncio.create_task(thread.aclose())
    for _ in range(2):
        await asyncio.sleep(0)
        closing.cancel()
    await asyncio.wait([closing])
    async with asyncio.timeout(HANGS):
        while asyncio.all_tasks() & before != {asyncio.current_task()}:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert "x" not in {each.name for each in threading.enumerate()}
    assert not thread.is_running
