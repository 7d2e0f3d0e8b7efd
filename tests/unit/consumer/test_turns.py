"""Code that works on records without waiting lets the event loop run in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio.types import Record
from tests.unit.consumer.test_io_thread import cluster, real

#: Seconds that the work on a record takes: longer than a tick of any kernel.
WORK = 0.012
#: Records in each of the two partitions.
COUNT = 15

Body = Callable[[], None]
Way = Callable[[Consumer, Body], Awaitable[None]]


class Enough(Exception):
    """All records were worked on."""


async def records(consumer: Consumer, body: Body) -> None:
    async for _ in consumer:
        body()


async def steps(consumer: Consumer, body: Body) -> None:
    while True:
        await anext(consumer)
        body()


async def polls(consumer: Consumer, body: Body) -> None:
    while True:
        for _ in (await consumer.poll(max_records=1)).records:
            body()


async def batches(consumer: Consumer, body: Body) -> None:
    async for _ in consumer.batches(max_records=1):
        body()


async def tables(consumer: Consumer, body: Body) -> None:
    pytest.importorskip("pyarrow")
    async for _ in consumer.arrow_batches(max_records=1):
        body()


async def lanes(consumer: Consumer, body: Body) -> None:
    async with asyncio.TaskGroup() as group:
        async for lane in consumer.partitions():

            async def work(lane: Any = lane) -> None:
                async for _ in lane:
                    body()

            group.create_task(work())


async def lane_batches(consumer: Consumer, body: Body) -> None:
    async with asyncio.TaskGroup() as group:
        async for lane in consumer.partitions():

            async def work(lane: Any = lane) -> None:
                async for _ in lane.batches(max_records=1):
                    body()

            group.create_task(work())


async def run(consumer: Consumer, body: Body) -> None:
    async def handle(record: Record) -> None:
        body()

    await consumer.run(handle, ordering="none")


#: Those that work in several tasks.
MANY = [lanes, lane_batches, run]
WAYS = [records, steps, polls, batches, tables, lanes, lane_batches, run]


class Turns:
    """Counts how many records were worked on between two turns of the loop.

    Args:
        quick: records at the beginning that take no time.
    """

    def __init__(self, quick: int = 0) -> None:
        self.quick = quick
        self.worked = self.since = self.most = 0
        self.all_done = asyncio.Event()

    def body(self) -> None:
        self.worked += 1
        if self.worked == 2 * COUNT:
            self.all_done.set()
        if self.worked > self.quick:
            self.since += 1
            self.most = max(self.most, self.since)
            time.sleep(WORK)

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.since = 0

    async def watch(self, way: Way, consumer: Consumer) -> None:
        reading = asyncio.create_task(way(consumer, self.body))
        ticking = asyncio.create_task(self.tick())
        async with asyncio.timeout(30):
            await self.all_done.wait()
        ticking.cancel()
        reading.cancel()
        await asyncio.wait([reading, ticking])


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_the_loop_runs_between_two_records(way: Way, io_thread: bool) -> None:
    @real
    async def test() -> None:
        async with cluster(2 * COUNT) as at:
            turns = Turns()
            async with Consumer(
                at.servers,
                topics="t",
                auto_offset_reset="earliest",
                io_thread=io_thread,
            ) as consumer:
                await turns.watch(way, consumer)
            # One in a turn; the turn of another task may come after two of them.
            assert turns.most <= (2 if way in MANY else 1)

    test()


@pytest.mark.parametrize("way", [records, steps])
def test_records_that_become_slow_suddenly(way: Way) -> None:
    @real
    async def test() -> None:
        async with cluster(2 * COUNT) as at:
            turns = Turns(quick=5)
            async with Consumer(
                at.servers, topics="t", auto_offset_reset="earliest"
            ) as consumer:
                await turns.watch(way, consumer)
            assert turns.most <= 1

    test()


@real
async def test_heartbeats_go_out_between_two_records() -> None:
    async with cluster(20) as at:
        options = {"auto_offset_reset": "earliest", "group_protocol": "classic"}
        async with Consumer(
            at.servers,
            topics="t",
            group_id="g",
            session_timeout_ms=3000,
            heartbeat_interval_ms=100,
            **options,
        ) as consumer:
            counts: list[int] = []
            async for _ in consumer:
                counts.append(at.heartbeats())
                time.sleep(0.25)  # noqa: ASYNC251  (what this is about)
                if len(counts) == 10:
                    break
            assert counts[-1] - counts[1] >= 5
            assert at.members() == [consumer.group_metadata.member_id]
            await consumer.commit()


@pytest.mark.parametrize("way", WAYS)
def test_a_cancellation_arrives_between_two_records(way: Way) -> None:
    @real
    async def test() -> None:
        async with (
            cluster(2 * COUNT) as at,
            Consumer(at.servers, topics="t", auto_offset_reset="earliest") as consumer,
        ):
            worked: list[int] = []
            loop = asyncio.get_running_loop()

            def body() -> None:
                worked.append(len(worked))
                time.sleep(WORK)
                if len(worked) == 3:
                    loop.call_soon(reading.cancel)

            reading = asyncio.create_task(way(consumer, body))
            await asyncio.wait([reading])
            assert reading.cancelled()
            assert len(worked) <= (5 if way in MANY else 3)

    test()
