import asyncio

import pytest

from kafkaio._runtime.broadcast import Broadcast


async def test_all_that_wait_are_woken_once() -> None:
    broadcast = Broadcast()
    waiting = [asyncio.ensure_future(broadcast.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(broadcast) == 3
    waiting[0].cancel()
    broadcast.notify_all()
    broadcast.notify_all()
    await asyncio.wait(waiting)
    assert waiting[0].cancelled()
    assert waiting[1].result() is None
    assert len(broadcast) == 0


async def test_a_failure_is_for_all_each_its_own() -> None:
    broadcast = Broadcast()
    waiting = [asyncio.ensure_future(broadcast.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    broadcast.fail(lambda: ValueError("first"))
    broadcast.fail(lambda: ValueError("second"))
    await asyncio.wait(waiting)
    errors = [waiter.exception() for waiter in waiting[1:]]
    assert [str(error) for error in errors] == ["first", "first"]
    assert errors[0] is not errors[1]
    with pytest.raises(ValueError, match="first"):
        await broadcast.wait()
