"""Where reading begins, what is too large, and what is wanted next, on a real Kafka."""

from __future__ import annotations

import asyncio
import time

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.groups import member, reading, until
from tests.support.patience import HANGS

pytestmark = pytest.mark.timeout(120)

PROTOCOLS = [
    "classic",
    pytest.param("consumer", marks=pytest.mark.kafka_versions("4.0+")),
]
HOUR_MS = 3_600_000
LARGE = 3 << 20


async def values(consumer: kafkaio.Consumer, count: int) -> list[bytes | None]:
    async with asyncio.timeout(HANGS):
        return [(await anext(consumer)).value for _ in range(count)]


async def written(kafka: Kafka, topic: str) -> None:
    """Two records of two hours ago, one of half an hour ago."""
    stamp = time.time_ns() // 1_000_000
    async with kafkaio.Producer(kafka.bootstrap_servers) as producer:
        await producer.send(topic, b"0", timestamp=stamp - 2 * HOUR_MS)
        await producer.send(topic, b"1", timestamp=stamp - 2 * HOUR_MS)
        await producer.send(topic, b"2", timestamp=stamp - HOUR_MS // 2)


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        ("earliest", 0),
        ("by_duration:PT1H", 2),
        ("by_duration:P1D", 0),
        ("by_duration:PT1M", 3),
        ("latest", 3),
    ],
)
async def test_a_policy_says_where_to_begin(
    real_kafka: Kafka, topic: TopicFactory, policy: str, first: int
):
    tp = TopicPartition(topic(), 0)
    await written(real_kafka, tp.topic)
    async with kafkaio.Consumer(
        real_kafka.bootstrap_servers, assign=[tp], auto_offset_reset=policy
    ) as consumer:
        assert await consumer.position(tp) == first
        consumer.seek(tp, 1_000)  # where no record ever was
        async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
            await until_moved(consumer, tp, 1_000)
            assert await consumer.position(tp) == first
            await producer.send(tp.topic, b"3")
        assert (await values(consumer, 1)) == [b"%d" % first]


async def until_moved(
    consumer: kafkaio.Consumer, tp: TopicPartition, where: int
) -> None:
    async with asyncio.timeout(HANGS):
        while await consumer.position(tp) == where:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def test_without_a_policy_the_error_names_the_place(
    real_kafka: Kafka, topic: TopicFactory
):
    bad, good = TopicPartition(topic(), 0), TopicPartition(topic(), 0)
    await written(real_kafka, bad.topic)
    async with kafkaio.Consumer(
        real_kafka.bootstrap_servers, assign=[bad, good], auto_offset_reset="none"
    ) as consumer:
        consumer.seek(good, 0)
        consumer.seek(bad, 77)
        with pytest.raises(kafkaio.OffsetOutOfRange, match="offset 77") as caught:
            await values(consumer, 1)
        error = caught.value
        assert (error.topic, error.partition, error.position) == (*bad, 77)
        consumer.seek(bad, 2)
        assert await values(consumer, 1) == [b"2"]


async def test_a_record_larger_than_any_buffer_holds_no_other_up(
    real_kafka: Kafka, topic: TopicFactory
):
    name = topic(partitions=2, config={"max.message.bytes": str(2 * LARGE)})
    options = {"max_request_size": 2 * LARGE, "buffer_memory": 4 * LARGE}
    async with kafkaio.Producer(real_kafka.bootstrap_servers, **options) as producer:
        for size in (1, LARGE, 1, LARGE + 1, 1):
            await producer.send(name, b"x" * size, partition=0)
        for n in range(20):
            await producer.send(name, b"%d" % n, partition=1)
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(
            real_kafka.bootstrap_servers,
            assign=[TopicPartition(name, 0), TopicPartition(name, 1)],
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=4096,
            fetch_max_bytes=8192,
        ) as consumer,
    ):
        sizes, small = [], []
        while len(sizes) < 5 or len(small) < 20:
            record = await anext(consumer)
            if record.partition == 0:
                sizes.append(len(record.value or b""))
            else:
                small.append(record.value)
    assert sizes == [1, LARGE, 1, LARGE + 1, 1]
    assert small == [b"%d" % n for n in range(20)]


async def test_fixed_partitions_that_are_not_there_are_told(
    real_kafka: Kafka, topic: TopicFactory
):
    tp = TopicPartition(topic(), 0)
    await written(real_kafka, tp.topic)
    async with kafkaio.Consumer(
        real_kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        default_api_timeout_ms=5_000,
    ) as consumer:
        consumer.assign([tp, TopicPartition(tp.topic, 5)])
        told, seen = [], []
        async with asyncio.timeout(HANGS):
            while not told or len(seen) < 3:
                try:
                    seen.append((await anext(consumer)).value)
                except kafkaio.UnknownTopicOrPartition as error:
                    told.append(error)
        assert "no partition 5" in str(told[0])
        assert seen == [b"0", b"1", b"2"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_many_wishes_in_flight_and_the_last_one_counts(
    real_kafka: Kafka, topic: TopicFactory, protocol: str
):
    names = [topic(partitions=2) for _ in range(3)]
    group = names[0]
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        for name in names:
            await producer.send(name, name.encode(), partition=1)
    options = {"group_protocol": protocol}
    async with member(real_kafka, names[0], group, **options) as consumer:
        consumer.subscribe(names[1])
        consumer.unsubscribe()
        consumer.subscribe([names[0], names[1]])
        consumer.subscribe(names[2])
        async with reading(consumer) as seen:
            wanted = {TopicPartition(names[2], n) for n in range(2)}
            await until(lambda: consumer.assignment == wanted)
            await until(lambda: names[2].encode() in seen)
            consumer.unsubscribe()
            await until(lambda: not consumer.assignment)
            consumer.subscribe(names)
            await until(lambda: len(consumer.assignment) == 6)
            await until(lambda: seen.keys() == {name.encode() for name in names})
        assert set(seen.values()) == {1}


@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
async def test_what_fetches_told_is_what_the_leaders_say(
    real_kafka: Kafka, topic: TopicFactory, isolation: str, *, io_thread: bool
):
    name = topic(3)
    tps = [TopicPartition(name, n) for n in range(3)]
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        for count, tp in enumerate(tps):
            for n in range(10 * count):
                await producer.enqueue(name, b"%d" % n, partition=tp.partition)
    async with kafkaio.Consumer(
        real_kafka.bootstrap_servers,
        topics=name,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        io_thread=io_thread,
    ) as consumer:
        assert consumer.subscription == {name}
        assert name in await consumer.topics()
        assert await consumer.partitions_for_topic(name) == {0, 1, 2}
        with pytest.raises(kafkaio.UnknownTopicOrPartition):
            await consumer.partitions_for_topic(f"{name}-missing")
        await values(consumer, 12)
        async with asyncio.timeout(HANGS):
            while any(consumer.high_watermark(tp) is None for tp in tps):
                await consumer.poll(timeout=0.1, max_records=1)
        ends = await consumer.end_offsets(tps)
        assert {tp: consumer.high_watermark(tp) for tp in tps} == ends
        assert {tp: consumer.last_stable_offset(tp) for tp in tps} == ends
        assert {tp: consumer.current_lag(tp) for tp in tps} == await consumer.lag()
