"""Cancelled anywhere, a reader has taken nothing: no record is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import ClosedError
from kafkaio.types import Record, TopicPartition
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
Read = Callable[[Consumer], Awaitable[list[Record]]]


async def iterate(consumer: Consumer) -> list[Record]:
    return [await anext(consumer)]


async def stream(consumer: Consumer) -> list[Record]:
    async for record in consumer:
        return [record]
    raise AssertionError


async def poll(consumer: Consumer) -> list[Record]:
    return (await consumer.poll(timeout=5, max_records=3)).records


async def batch(consumer: Consumer) -> list[Record]:
    return (await anext(consumer.batches(max_records=3, max_wait=0.1))).records


async def table(consumer: Consumer) -> list[Record]:
    found = await anext(consumer.arrow_batches(max_records=3, max_wait=0.1))
    return [
        Record(row["topic"], row["partition"], row["offset"], 0, None, row["value"])
        for row in found.to_pylist()
    ]


async def cancelled_after(steps: int, read: Awaitable[list[Record]]) -> list[Record]:
    """Run a reader for so many turns of the loop and cancel it; what it returned."""
    task = asyncio.ensure_future(read)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return []


@pytest.mark.parametrize("read", [iterate, stream, poll, batch, table])
async def test_nothing_is_lost_or_doubled(
    read: Read, logs: FakeLogs, make: MakeConsumer
):
    consumer = make(
        assign=[ONE], group_id="g", auto_offset_reset="earliest", fetch_max_wait_ms=5
    )
    async with consumer:
        got: list[int] = []
        written = 0
        for steps in range(60):
            for _ in range(2):
                logs.append("one", 0, b"%d" % written)
                written += 1
            got += [r.offset for r in await cancelled_after(steps, read(consumer))]
            assert got == list(range(len(got)))
        while len(got) < written:
            got += [r.offset for r in await read(consumer)]
        assert got == list(range(written))
    # Cancelling finished nothing but what was handed out before.
    assert logs.committed["one", 0] < written


async def test_leaving_the_loop_does_not_finish_the_record(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, *[b"%d" % n for n in range(5)])
    options = {"assign": [ONE], "group_id": "g", "auto_offset_reset": "earliest"}
    async with make(**options) as consumer:
        async for record in consumer:
            if record.offset == 1:
                break
    assert logs.committed["one", 0] == 1

    async def fail(consumer: Consumer) -> None:
        async with consumer:
            async for record in consumer:
                assert record.offset in {1, 2}
                if record.offset == 2:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail(make(**options))
    assert logs.committed["one", 0] == 2

    async def work(consumer: Consumer) -> None:
        async for record in consumer:
            if record.offset == 3:
                await asyncio.sleep(100)

    async with make(**options) as consumer:
        task = asyncio.create_task(work(consumer))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
    assert logs.committed["one", 0] == 3


async def test_starting_can_be_cancelled_anywhere(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"x")
    steps = 0
    while True:
        steps += 1
        consumer = make(assign=[ONE], group_id="g", auto_offset_reset="earliest")
        task = asyncio.create_task(consumer.start())
        for _ in range(steps):
            await asyncio.sleep(0)
        if task.done():
            break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert consumer.statistics().state == "closed"
    await task
    assert (await anext(consumer)).value == b"x"
    await consumer.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [t for t in others if "kafkaio" in t.get_name()]


async def test_it_can_be_closed_anywhere_in_starting(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, b"x")
    steps = 0
    while True:
        steps += 1
        consumer = make(assign=[ONE], group_id="g", auto_offset_reset="earliest")
        task = asyncio.create_task(consumer.start())
        for _ in range(steps):
            await asyncio.sleep(0)
        if task.done():
            break
        await consumer.close()
        assert consumer.statistics().state == "closed"
        await asyncio.wait([task])
        failure = task.exception()  # none where it had just been ready
        assert failure is None or isinstance(failure, ClosedError), failure
    await task
    await consumer.close()


async def test_a_close_that_is_cut_short_leaves_nothing_buffered(
    logs: FakeLogs, make: MakeConsumer
):
    logs.append("one", 0, *[b"%d" % n for n in range(5)])
    consumer = make(assign=[ONE], group_id="g", auto_offset_reset="earliest")
    await consumer.start()
    async with asyncio.timeout(5):
        while not consumer.statistics().buffered_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    closing = asyncio.create_task(consumer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    left = consumer.statistics()
    assert (left.state, left.buffered_bytes, left.assigned) == ("closed", 0, 0)
