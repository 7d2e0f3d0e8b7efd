"""What hurts users of other clients, where no other module shows that it does not here.

The whole list, with the tests for each, is in docs/pains.md.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(180)

HEADERS = (("trace", b"1"), ("empty", b""), ("none", None), ("trace", b"2"))


async def sent_in_every_way(producer: kafkaio.Producer, topic: str) -> list[str]:
    """Send the same record in every way there is; their names, in the log's order."""
    for way in ("send", "enqueue", "enqueue_nowait"):
        call = getattr(producer, way)
        made = call(topic, way.encode(), key=b"k", headers=HEADERS, timestamp=1234)
        if way != "enqueue_nowait":
            made = await made
        if way != "send":
            await made
    many = kafkaio.NewRecord(b"send_many", key=b"k", headers=HEADERS, timestamp=1234)
    await producer.send_many(topic, [many])
    return ["send", "enqueue", "enqueue_nowait", "send_many"]


async def iterated(consumer: kafkaio.Consumer) -> AsyncIterator[kafkaio.Record]:
    async for record in consumer:
        yield record


async def polled(consumer: kafkaio.Consumer) -> AsyncIterator[kafkaio.Record]:
    while True:
        for record in (await consumer.poll(timeout=1.0)).records:
            yield record


async def in_batches(consumer: kafkaio.Consumer) -> AsyncIterator[kafkaio.Record]:
    async for batch in consumer.batches(max_wait=0.0):
        for record in batch:
            yield record


async def in_lanes(consumer: kafkaio.Consumer) -> AsyncIterator[kafkaio.Record]:
    async for lane in consumer.partitions():
        async with lane:
            async for record in lane:
                yield record


@pytest.mark.parametrize("way", [iterated, polled, in_batches, in_lanes])
async def test_every_way_to_send_and_to_read_carries_the_whole_record(
    real_kafka: Kafka, topic: TopicFactory, way
):
    # The timestamps are old, and retention would delete the records by them.
    name = topic(config={"retention.ms": "-1"})
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        sent = await sent_in_every_way(producer, name)
    options = {"assign": [(name, 0)], "auto_offset_reset": "earliest"}
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(real_kafka.bootstrap_servers, **options) as consumer,
    ):
        seen = []
        records = way(consumer)
        while len(seen) < len(sent):
            seen.append(await anext(records))
        await records.aclose()
    assert [record.value for record in seen] == [name.encode() for name in sent]
    assert {(r.key, r.headers, r.timestamp) for r in seen} == {(b"k", HEADERS, 1234)}
    assert [record.offset for record in seen] == list(range(len(sent)))


@pytest.mark.not_embedded("an embedded broker is in the memory that is measured")
async def test_memory_does_not_grow_with_what_was_done(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic(partitions=4)
    rounds, each = 6, 300

    async with (
        asyncio.timeout(HANGS),
        kafkaio.Producer(real_kafka.bootstrap_servers) as producer,
        kafkaio.Consumer(
            real_kafka.bootstrap_servers, topics=name, group_id=name
        ) as consumer,
    ):

        async def work() -> None:
            for n in range(each):
                await producer.send(name, b"%d" % n)
            for _ in range(each):
                await anext(consumer)
            await consumer.commit()

        kept = []
        tracemalloc.start()
        try:
            for _ in range(rounds):
                await work()
                gc.collect()
                kept.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    # What every request or record left behind would come to more than this each.
    assert kept[-1] - kept[2] < (rounds - 3) * each * 32, kept
