"""Several tasks read from one `AIOKafkaConsumer`, and are cancelled at every await."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio import TopicPartition
from kafkaio.aiokafka import AIOKafkaConsumer
from kafkaio.testing import Broker

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
COUNT = 60
Seen = dict[TopicPartition, list[int]]


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 3}) as broker:
        yield broker


def consumer_of(broker: Broker, **options: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        **options,
    )


async def write(broker: Broker, count: int) -> None:
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            for tp in PARTITIONS:
                where = {"partition": tp.partition}
                await producer.send(tp.topic, b"%d" % number, **where)


def note(seen: Seen, records: list[Any]) -> None:
    for record in records:
        # Noted in the step in which it was returned: nothing can come between.
        seen[TopicPartition(record.topic, record.partition)].append(record.offset)


async def one(consumer: AIOKafkaConsumer, seen: Seen, *of: TopicPartition) -> None:
    note(seen, [await consumer.getone(*of)])


async def many(consumer: AIOKafkaConsumer, seen: Seen, *of: TopicPartition) -> None:
    found = await consumer.getmany(*of, timeout_ms=40, max_records=4)
    for tp, records in found.items():
        assert not of or tp in of
        note(seen, records)


def is_whole(seen: Seen) -> bool:
    return all(len(seen[tp]) >= COUNT for tp in PARTITIONS)


Read = Callable[..., Coroutine[Any, Any, None]]
#: Who reads at a time: how, and which partitions.
CASTS: dict[str, list[tuple[Read, tuple[TopicPartition, ...]]]] = {
    "one each": [(one, (tp,)) for tp in PARTITIONS],
    "many each": [(many, (tp,)) for tp in PARTITIONS],
    "all of all": [(one, ()), (many, ()), (one, ())],
    "overlapping": [(one, (*PARTITIONS[:2],)), (many, (*PARTITIONS[1:],)), (one, ())],
    "alone": [(many, ())],
}


@pytest.mark.parametrize("cast", CASTS)
async def test_every_record_comes_once_to_readers_that_are_cancelled(
    cast: str, broker: Broker
) -> None:
    chance = random.Random(cast)
    seen: Seen = defaultdict(list)
    writing = asyncio.create_task(write(broker, COUNT))
    async with consumer_of(broker) as consumer, asyncio.timeout(100):

        async def read(how: Read, of: tuple[TopicPartition, ...]) -> None:
            while not is_whole(seen):
                reading = asyncio.create_task(how(consumer, seen, *of))
                # Each step is an await of the reader at which it may be cancelled.
                for _ in range(chance.randrange(40)):
                    await asyncio.sleep(0)
                    if reading.done():
                        break
                if chance.random() < 0.7:
                    reading.cancel()
                    await asyncio.wait([reading])
                else:
                    await asyncio.wait([reading], timeout=0.2)
                    reading.cancel()
                    await asyncio.wait([reading])
                if not reading.cancelled():
                    reading.result()

        async with asyncio.TaskGroup() as group:
            for how, of in CASTS[cast]:
                group.create_task(read(how, of))
    await writing
    assert {tp: sorted(offsets) for tp, offsets in seen.items()} == {
        tp: [*range(COUNT)] for tp in PARTITIONS
    }
    if cast in ("one each", "many each", "alone"):
        assert all(offsets == sorted(offsets) for offsets in seen.values())


@pytest.mark.parametrize("step", range(12))
async def test_a_read_that_is_cancelled_at_an_await_has_taken_nothing(
    step: int, broker: Broker
) -> None:
    async with consumer_of(broker) as consumer:
        others = [asyncio.ensure_future(consumer.getone(tp)) for tp in PARTITIONS[1:]]
        reading = asyncio.ensure_future(consumer.getone(PARTITIONS[0]))
        await asyncio.sleep(0.05)  # all of them wait
        await write(broker, 1)
        for _ in range(step):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        async with asyncio.timeout(10):
            assert [(await other).offset for other in others] == [0, 0]
            if reading.cancelled():
                record = await consumer.getone(PARTITIONS[0])
            else:
                record = reading.result()
        assert record.offset == 0
        assert await consumer.getmany(timeout_ms=20) == {}


async def test_a_newcomer_does_not_wait_for_who_waits(broker: Broker) -> None:
    await write(broker, 1)
    async with consumer_of(broker) as consumer, asyncio.timeout(20):
        for tp in PARTITIONS:
            await consumer.getone(tp)
        waiting = [asyncio.ensure_future(consumer.getone(tp)) for tp in PARTITIONS]
        await asyncio.sleep(0.05)
        # Nothing is there, and it is told so at once.
        assert await consumer.getmany(timeout_ms=0) == {}
        assert await consumer.getmany(PARTITIONS[0], timeout_ms=30) == {}
        await consumer.seek_to_beginning(PARTITIONS[1])
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().partition for task in done] == [1]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)


async def test_a_waiting_reader_sees_what_is_assigned_later(broker: Broker) -> None:
    await write(broker, 1)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    )
    async with consumer, asyncio.timeout(20):
        consumer.assign(PARTITIONS[:1])
        await consumer.getone()
        waiting = asyncio.ensure_future(consumer.getone(*PARTITIONS[:2]))
        await asyncio.sleep(0.05)
        consumer.assign(PARTITIONS[:2])
        assert (await waiting).partition == 1
        # Given up while it waits: it waits on.
        waiting = asyncio.ensure_future(consumer.getone(PARTITIONS[1]))
        await asyncio.sleep(0.05)
        consumer.assign(PARTITIONS[2:])
        assert (await consumer.getone()).partition == 2
        assert not waiting.done()
        consumer.assign(PARTITIONS[1:])
        assert (await waiting).partition == 1


async def test_a_read_outlives_the_end_of_the_subscription(broker: Broker) -> None:
    async with consumer_of(broker) as consumer, asyncio.timeout(20):
        waiting = asyncio.ensure_future(consumer.getone())
        await asyncio.sleep(0.05)
        consumer.unsubscribe()
        assert await consumer.getmany(timeout_ms=20) == {}
        await write(broker, 1)
        assert not waiting.done()
        consumer.subscribe(["t"])
        assert (await waiting).offset == 0


async def test_workers_of_partitions_finish_only_their_own(broker: Broker) -> None:
    await write(broker, 3)
    options = {"group_id": "g", "auto_commit_interval_ms": 20}
    async with consumer_of(broker, **options) as consumer, asyncio.timeout(20):
        await consumer.getone(PARTITIONS[0])  # worked on, for long
        for _ in range(3):
            await consumer.getone(PARTITIONS[1])
        while await consumer.committed(PARTITIONS[1]) != 2:
            await consumer.getmany(PARTITIONS[2], timeout_ms=10)
        assert await consumer.committed(PARTITIONS[0]) in (None, 0)
