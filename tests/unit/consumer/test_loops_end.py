"""Loops over a consumer end when it is closed; calls raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import ClosedError
from kafkaio.testing import Broker
from kafkaio.types import Record
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.test_io_thread import cluster, real

Body = Callable[[], Awaitable[None]]
Loop = Callable[[Consumer, Body], Awaitable[None]]


async def records(consumer: Consumer, body: Body) -> None:
    async for _ in consumer:
        await body()


async def batches(consumer: Consumer, body: Body) -> None:
    async for _ in consumer.batches(max_records=1):
        await body()


async def tables(consumer: Consumer, body: Body) -> None:
    pytest.importorskip("pyarrow")
    async for _ in consumer.arrow_batches(max_records=1):
        await body()


async def lanes(consumer: Consumer, body: Body) -> None:
    async for lane in consumer.partitions():
        async for _ in lane:
            await body()


async def run(consumer: Consumer, body: Body) -> None:
    async def handle(record: Record) -> None:
        await body()

    await consumer.run(handle)


LOOPS = pytest.mark.parametrize("loop", [records, batches, tables, lanes, run])
DIRECT = pytest.mark.parametrize("loop", [records, batches, tables])
CALLS: dict[str, Callable[[Consumer], Awaitable[Any]]] = {
    "poll": lambda consumer: consumer.poll(),
    "anext": anext,
}


async def nothing() -> None:
    """Do nothing with a record."""


def counting(count: int, then: Body) -> tuple[list[int], Body]:
    seen: list[int] = []

    async def body() -> None:
        seen.append(len(seen))
        if len(seen) == count:
            await then()

    return seen, body


@LOOPS
async def test_a_loop_that_waits_ends(logs: FakeLogs, make: MakeConsumer, loop: Loop):
    consumer = make(topics="one")
    await consumer.start()
    task = asyncio.create_task(loop(consumer, nothing))
    await asyncio.sleep(1)
    await consumer.close()
    await task


@LOOPS
async def test_a_loop_that_is_at_work_ends_after_its_record(
    logs: FakeLogs, make: MakeConsumer, loop: Loop
):
    logs.append("one", 0, b"1", b"2", b"3")
    consumer = make(topics="one", auto_offset_reset="earliest", group_id=None)
    await consumer.start()
    at_work, goes_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        at_work.set()
        await goes_on.wait()

    seen, body = counting(1, work)
    task = asyncio.create_task(loop(consumer, body))
    await at_work.wait()
    closing = asyncio.create_task(consumer.close())
    await asyncio.sleep(0.1)
    goes_on.set()
    await asyncio.gather(task, closing)
    assert seen == ([0, 1, 2] if loop is run else [0])  # it works on all at once


@DIRECT
async def test_a_loop_ends_that_closes_in_its_body(
    logs: FakeLogs, make: MakeConsumer, loop: Loop
):
    logs.append("one", 0, b"1", b"2", b"3")
    consumer = make(topics="one", auto_offset_reset="earliest")
    await consumer.start()
    seen, body = counting(2, consumer.close)
    await loop(consumer, body)
    assert seen == [0, 1]


@LOOPS
async def test_a_loop_that_begins_later_raises(
    logs: FakeLogs, make: MakeConsumer, loop: Loop
):
    consumer = make(topics="one")
    await consumer.start()
    await consumer.close()
    with pytest.raises(ClosedError, match="is closed"):
        await loop(consumer, nothing)


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_raises(logs: FakeLogs, make: MakeConsumer, call: str):
    consumer = make(topics="one")
    await consumer.start()
    task = asyncio.ensure_future(CALLS[call](consumer))
    await asyncio.sleep(1)
    await consumer.close()
    with pytest.raises(ClosedError, match="is closed"):
        await task
    with pytest.raises(ClosedError, match="is closed"):
        await CALLS[call](consumer)


@DIRECT
async def test_a_loop_of_a_consumer_that_crashed_raises(
    logs: FakeLogs, make: MakeConsumer, loop: Loop
):
    logs.append("one", 0, b"1", b"2")
    consumer = make(topics="one", auto_offset_reset="earliest")
    await consumer.start()

    async def crash_and_close() -> None:
        for task in asyncio.all_tasks():
            if "fetch from" in task.get_name():
                task.cancel()
        await asyncio.sleep(0.1)
        await consumer.close()

    _, body = counting(1, crash_and_close)
    with pytest.raises(ClosedError, match="cancelled from outside"):
        await loop(consumer, body)


@DIRECT
def test_an_io_thread_ends_its_loops(loop: Loop) -> None:
    @real
    async def waiting() -> None:
        async with cluster(0) as at:
            consumer = at.consumer()
            await consumer.start()
            task = asyncio.create_task(loop(consumer, nothing))
            await asyncio.sleep(0.05)
            await consumer.close()
            await task
            with pytest.raises(ClosedError):
                await loop(consumer, nothing)
            with pytest.raises(ClosedError):
                await consumer.poll()

    @real
    async def at_work() -> None:
        async with cluster(10) as at:
            consumer = at.consumer()
            await consumer.start()
            seen, body = counting(2, consumer.close)
            await loop(consumer, body)
            assert seen == [0, 1]

    waiting()
    at_work()


def test_an_io_thread_ends_a_poll() -> None:
    @real
    async def poll() -> None:
        async with Broker(topics={"t": 1}) as broker:
            consumer = Consumer(broker.bootstrap_servers, topics="t", io_thread=True)
            await consumer.start()
            task = asyncio.create_task(consumer.poll())
            await asyncio.sleep(0.05)
            await consumer.close()
            with pytest.raises(ClosedError):
                await task

    poll()
