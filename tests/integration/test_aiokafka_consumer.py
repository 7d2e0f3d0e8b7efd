"""`kafkaio.aiokafka.AIOKafkaConsumer` and aiokafka's, on Apache Kafka.

`tests/unit/aiokafka/test_consumer.py` has the same programs on the embedded broker.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.unit.aiokafka.side import SIDES, Side, side

pytestmark = [pytest.mark.timeout(120), pytest.mark.kafka_versions("2.8+")]
COUNT = 200


@pytest.fixture
def it(name: str) -> Side:
    return side(name)


async def write(servers: str, topic: str, count: int = COUNT) -> None:
    async with kafkaio.Producer(servers) as producer:
        for number in range(count):
            value = b"%d" % number
            await producer.enqueue(topic, value, key=b"k", partition=number % 2)


def consumer_of(it: Side, servers: str, *topics: str, **options: Any) -> Any:
    kind = it.top.AIOKafkaConsumer
    options = {"auto_offset_reset": "earliest", **options}
    return kind(*topics, bootstrap_servers=servers, **options)


@SIDES
async def test_a_group_reads_commits_and_goes_on(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name, servers = topic(partitions=2), real_kafka.bootstrap_servers
    group = f"names-{uuid.uuid4().hex[:8]}"
    await write(servers, name)
    seen: list[int] = []
    options = {"group_id": group, "enable_auto_commit": False}
    for _ in range(2):
        async with consumer_of(it, servers, name, **options) as consumer:
            target = len(seen) + COUNT // 2
            while len(seen) < target:
                left = target - len(seen)
                found = await consumer.getmany(timeout_ms=5000, max_records=left)
                for records in found.values():
                    seen += [int(record.value) for record in records]
            await consumer.commit()
    assert sorted(seen) == [*range(COUNT)]


@SIDES
async def test_tasks_read_their_partitions(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name, servers = topic(partitions=2), real_kafka.bootstrap_servers
    await write(servers, name)
    async with consumer_of(it, servers, name) as consumer:

        async def read(number: int) -> list[int]:
            tp = it.top.TopicPartition(name, number)
            each = COUNT // 2
            return [int((await consumer.getone(tp)).value) for _ in range(each)]

        found = await asyncio.gather(read(0), read(1))
    assert [*found] == [[*range(0, COUNT, 2)], [*range(1, COUNT, 2)]]


@pytest.mark.parametrize("first", ["aiokafka", "kafkaio.aiokafka"])
async def test_members_of_both_share_a_group(
    first: str, real_kafka: Kafka, topic: TopicFactory
) -> None:
    names = ["aiokafka", "kafkaio.aiokafka"]
    name, servers = topic(partitions=2), real_kafka.bootstrap_servers
    group = f"names-{uuid.uuid4().hex[:8]}"
    await write(servers, name)
    options = {
        "group_id": group,
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 200,
    }
    one = consumer_of(side(first), servers, name, **options)
    (second,) = (each for each in names if each != first)
    two = consumer_of(side(second), servers, name, **options)
    async with one:
        joining = asyncio.ensure_future(two.start())
        while not joining.done():
            await one.getmany(timeout_ms=100, max_records=1)
        await joining
        seen: set[int] = set()
        async with asyncio.timeout(60):
            while len(one.assignment()) != 1:
                await one.getmany(timeout_ms=100, max_records=1)
            for consumer in (one, two):
                await consumer.seek_to_beginning()
            while len(seen) < COUNT:
                for consumer in (one, two):
                    for records in (await consumer.getmany(timeout_ms=100)).values():
                        seen |= {int(record.value) for record in records}
        assert not one.assignment() & two.assignment()
        await two.stop()
