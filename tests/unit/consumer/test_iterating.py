"""``async for``: what happens between two steps of the loop, and during one."""

from __future__ import annotations

import asyncio
import re

import pytest

from kafkaio._consumer import Consumer
from kafkaio._consumer.core import Core
from kafkaio.errors import ClosedError, DeserializationError, UsageError
from kafkaio.types import Record, TopicPartition
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs

ONE = TopicPartition("one", 0)
ORDERS = [TopicPartition("orders", n) for n in range(3)]
FIRST = {"assign": [ONE], "auto_offset_reset": "earliest"}


def fill(logs: FakeLogs, count: int, size: int = 5) -> None:
    for start in range(0, count, size):
        logs.append("one", 0, *[b"%d" % n for n in range(start, start + size)])


async def take(consumer: Consumer, count: int) -> list[Record]:
    taken = []
    async for record in consumer:
        taken.append(record)
        if len(taken) == count:
            break
    return taken


async def test_across_batches_and_waits(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 20)
    async with make(**FIRST) as consumer:
        task = asyncio.create_task(take(consumer, 400))
        for _ in range(38):
            await asyncio.sleep(0.1)
            start = logs.log("one").end
            logs.append("one", 0, *[b"%d" % n for n in range(start, start + 10)])
        taken = await task
        assert [r.offset for r in taken] == list(range(400))
        assert [r.value for r in taken] == [b"%d" % n for n in range(400)]


async def test_a_step_makes_no_coroutine(
    logs: FakeLogs, make: MakeConsumer, monkeypatch: pytest.MonkeyPatch
):
    fill(logs, 40)
    async with make(**FIRST) as consumer:
        await take(consumer, 1)
        long_ways = []
        ordinary = Core.next_record

        def counted(core):
            long_ways.append(1)
            return ordinary(core)

        monkeypatch.setattr(Core, "next_record", counted)
        assert len(await take(consumer, 39)) == 39
        assert not long_ways


async def test_seeking_inside_the_loop(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 20)
    seen = []
    async with make(**FIRST, group_id="g") as consumer:
        async for record in consumer:
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                consumer.seek(ONE, 11)
            if record.offset == 13:
                consumer.seek(ONE, 1)
            if len(seen) == 8:
                break
        assert seen == [0, 1, 2, 11, 12, 13, 1, 2]
        assert await consumer.position(ONE) == 3
    assert logs.committed["one", 0] == 2  # the last one was being worked on


async def test_pausing_inside_the_loop(logs: FakeLogs, make: MakeConsumer):
    for tp in ORDERS:
        logs.append(*tp, *[b"x"] * 6)
    seen: list[TopicPartition] = []
    async with make(
        assign=ORDERS, auto_offset_reset="earliest", group_id="g"
    ) as consumer:
        async for record in consumer:
            if not seen:
                held = record.topic_partition
            seen.append(record.topic_partition)
            if len(seen) == 2:
                consumer.pause(held)
            if len(seen) == 10:
                consumer.resume(held)
            if len(seen) == 18:
                break
        assert seen[:2] == [held, held]
        assert held not in seen[2:10]
        assert seen.count(held) == 6
        assert {seen.count(tp) for tp in ORDERS} == {6}
    assert sum(logs.committed.values()) == 17  # the last one was being worked on


async def test_new_partitions_inside_the_loop(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 10)
    logs.append("orders", 1, b"o")
    seen = []
    async with make(**FIRST) as consumer:
        async for record in consumer:
            seen.append(record.topic)
            if len(seen) == 2:
                consumer.assign([ORDERS[1]])
            if len(seen) == 3:
                break
    assert seen == ["one", "one", "orders"]


async def test_closing_inside_the_loop(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 10)
    consumer = make(**FIRST)
    await consumer.start()
    await take(consumer, 2)
    await consumer.close()
    with pytest.raises(ClosedError):
        await take(consumer, 1)


async def test_what_fails_in_the_background_comes_next(
    logs: FakeLogs, make: MakeConsumer
):
    fill(logs, 10)
    async with make(**FIRST, group_id="g") as consumer:
        await take(consumer, 2)
        consumer._core.reader.fail(ZeroDivisionError("mine"))
        with pytest.raises(ZeroDivisionError, match="mine"):
            await take(consumer, 1)
        assert [r.offset for r in await take(consumer, 1)] == [2]
    assert logs.committed["one", 0] == 2


async def test_one_reader_at_a_time(logs: FakeLogs, make: MakeConsumer):
    async with make(**FIRST) as consumer:
        waiting = asyncio.create_task(take(consumer, 3))
        await asyncio.sleep(1)
        for other in (take(consumer, 1), consumer.poll(), anext(aiter(consumer))):
            with pytest.raises(UsageError, match=re.escape("another task is reading")):
                await other
        fill(logs, 5)
        assert len(await waiting) == 3
        assert len(await take(consumer, 2)) == 2


async def test_who_polls_is_alone_while_the_loop_has_its_turn(
    logs: FakeLogs, make: MakeConsumer
):
    fill(logs, 10)
    async with make(**FIRST) as consumer:
        await take(consumer, 2)
        consumer._core.time_slice.end = 0.0  # the poll gives the loop a turn first
        polling = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="another task"):
            await take(consumer, 1)
        assert (await polling).records[0].offset == 2


async def test_the_loop_has_a_turn_between_records(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 1000, size=100)
    turns = 0
    async with make(**FIRST) as consumer:
        await asyncio.sleep(1)
        engine, loop = consumer._core, asyncio.get_running_loop()

        def turn() -> None:
            nonlocal turns
            turns += 1

        seen = 0
        async for _ in consumer:
            seen += 1
            if seen % 200 == 0:
                engine.time_slice.end = 0.0  # as if a millisecond had passed
                loop.call_soon(turn)
            if seen == 1000:
                break
    # A turn is due with every 256th record at the latest.
    assert turns >= 3


async def test_a_record_that_cannot_be_deserialized(logs: FakeLogs, make: MakeConsumer):
    logs.append("one", 0, b"1", b"2", b"x", b"4")
    async with make(**FIRST, group_id="g", value_deserializer=int) as consumer:
        assert [r.value for r in await take(consumer, 2)] == [1, 2]
        for _ in range(3):
            with pytest.raises(DeserializationError, match="invalid literal") as caught:
                await take(consumer, 1)
            text = "deserializing the value of one-0 at offset 2 failed: ValueError"
            assert str(caught.value).startswith(text)
            assert await consumer.position(ONE) == 2
        await consumer.commit()
        assert logs.committed["one", 0] == 2
        consumer.seek(ONE, 3)
        assert [r.value for r in await take(consumer, 1)] == [4]


async def test_a_log_that_was_cut_short(logs: FakeLogs, make: MakeConsumer):
    fill(logs, 10)
    async with make(**FIRST, group_id="g") as consumer:
        assert len(await take(consumer, 10)) == 10
        assert await consumer.position(ONE) == 10
        log = logs.log("one")
        del log.batches[1:]
        log.end = 5
        logs.grow()
        await asyncio.sleep(2)
        assert [r.offset for r in await take(consumer, 5)] == [0, 1, 2, 3, 4]
