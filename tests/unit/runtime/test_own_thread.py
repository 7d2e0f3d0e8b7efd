"""Blocking calls in threads that are not the application's."""

from __future__ import annotations

import asyncio
import gc
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from kafkaio._runtime.own_thread import in_thread, start_thread
from kafkaio._runtime.scopes import CancelScope
from kafkaio.security import FileToken
from tests.support.patience import HANGS

place: ContextVar[str] = ContextVar("place", default="nowhere")


async def test_what_a_call_returns_and_raises() -> None:
    place.set("here")
    assert await start_thread(place.get, "reads") == "here"
    with pytest.raises(ZeroDivisionError):
        await start_thread(lambda: 1 / 0, "divides")
    names = await start_thread(lambda: threading.current_thread().name, "a name")
    assert names == "a name"


async def test_a_cancelled_call_is_left_alone() -> None:
    release = threading.Event()
    for error in (None, ValueError()):

        def call(error: Exception | None = error) -> None:
            release.wait()
            if error is not None:
                raise error

        task = asyncio.create_task(wait(call))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    release.set()
    for each in threading.enumerate():
        if each.name == "waits":
            each.join()
    await asyncio.sleep(0.01)  # its outcome comes, and is dropped
    gc.collect()


async def wait(call: object) -> None:
    assert callable(call)
    await start_thread(call, "waits")


def test_a_loop_that_is_closed_meanwhile() -> None:
    release = threading.Event()

    async def main() -> None:
        start_thread(release.wait, "waits")

    asyncio.run(main())
    release.set()
    for each in threading.enumerate():
        if each.name == "waits":
            each.join()  # an exception there would fail the test


async def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="can't start new thread"):
        await start_thread(list, "none")


async def test_a_token_is_read_although_the_applications_threads_are_busy(
    tmp_path: Path,
) -> None:
    file, release = tmp_path / "token", threading.Event()
    claims = urlsafe_b64encode(b'{"exp":99999999999}').rstrip(b"=").decode()
    file.write_text(f"e30.{claims}.x")
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, release.wait)
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, release.wait)
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(HANGS):
                assert (await FileToken(str(file))()).value == file.read_text()
        finally:
            release.set()
            await busy


async def test_a_thread_is_waited_for_although_a_scope_is_cancelled() -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()

    def work(cancel: Callable[[], None]) -> str:
        loop.call_soon_threadsafe(cancel)
        loop.call_soon_threadsafe(loop.call_soon, release.set)
        assert release.wait(HANGS)
        return "done"

    with CancelScope() as scope:
        assert await in_thread(partial(work, scope.cancel), "waited for") == "done"
    assert scope.cancel_called
    assert not scope.cancelled_caught


async def test_a_task_that_is_cancelled_leaves_its_thread() -> None:
    release = threading.Event()
    task = asyncio.create_task(in_thread(release.wait, "left"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=HANGS)
    assert task.cancelled()
    release.set()
