"""kafkaio on librdkafka's mock cluster, a common stand-in for Kafka in tests.

The mock runs in threads of a confluent_kafka client (``test.mock.num.brokers``) and
needs nothing else. It announces versions that it does not read, and its answers are not
always by the schema: see docs/guide/testing.md.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import confluent_kafka
import pytest

import kafkaio
from kafkaio import TopicPartition
from tests.support.patience import HANGS

#: What it announces and cannot do: it reads no flexible version of these requests.
MAX_VERSIONS = {
    "Heartbeat": 3,
    "JoinGroup": 5,
    "LeaveGroup": 2,
    "OffsetCommit": 7,
    "OffsetFetch": 5,
    "SyncGroup": 3,
}
NAMES = itertools.count()


@pytest.fixture(scope="session")
def mock() -> Iterator[str]:
    """The bootstrap servers of three brokers."""
    options = {"bootstrap.servers": "ignored", "test.mock.num.brokers": 3}
    keeper = confluent_kafka.Producer({**options, "log_level": 0})
    brokers = keeper.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{it.host}:{it.port}" for it in brokers)
    keeper.flush(1)


@pytest.fixture
def topic() -> str:
    return f"topic-{next(NAMES)}"


async def produce(mock: str, topic: str, count: int) -> None:
    async with kafkaio.Producer(mock) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=number % 4)


async def values(consumer: kafkaio.Consumer, count: int) -> set[int]:
    found: set[int] = set()
    async with asyncio.timeout(HANGS):
        async for record in consumer:
            assert record.value is not None
            found.add(int(record.value))
            if len(found) == count:
                return found
    raise AssertionError(found)


async def test_produce_and_consume(mock: str, topic: str) -> None:
    await produce(mock, topic, 40)
    consumer = kafkaio.Consumer(mock, topics=[topic], auto_offset_reset="earliest")
    async with consumer:
        assert await values(consumer, 40) == set(range(40))


async def test_a_foreign_client_reads_it(mock: str, topic: str) -> None:
    await produce(mock, topic, 4)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": mock, "group.id": topic})
    partitions = [confluent_kafka.TopicPartition(topic, n, 0) for n in range(4)]
    consumer.assign(partitions)
    found: set[int] = set()
    async with asyncio.timeout(HANGS):
        while len(found) < 4:
            message = await asyncio.to_thread(consumer.poll, 1)
            if message is not None and message.error() is None:
                found.add(int(message.value()))
    consumer.close()


async def test_a_group(mock: str, topic: str) -> None:
    await produce(mock, topic, 40)
    consumer = kafkaio.Consumer(
        mock,
        topics=[topic],
        group_id=topic,
        group_protocol="classic",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_versions=MAX_VERSIONS,
    )
    async with consumer:
        assert await values(consumer, 40) == set(range(40))
        await consumer.commit()
    async with kafkaio.Client(mock, max_versions=MAX_VERSIONS) as client:
        partitions = [TopicPartition(topic, number) for number in range(4)]
        committed = await client.committed(topic, partitions)
    assert [it and it.offset for it in committed.values()] == [10, 10, 10, 10]


async def test_transactions(mock: str, topic: str) -> None:
    producer = kafkaio.Producer(mock, transactional_id=topic)
    async with producer:
        async with producer.transaction() as transaction:
            await transaction.send(topic, b"1", partition=0)
        aborted = producer.transaction()
        await aborted.__aenter__()
        await aborted.send(topic, b"2", partition=0)
        await aborted.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)


async def test_what_it_announces_wrongly_is_not_sent(mock: str) -> None:
    async with kafkaio.Client(mock, max_versions="Metadata:8") as client:
        request = kafkaio.messages.MetadataRequest(topics=None)
        answer = await client.request(request)
    assert len(answer.brokers) == 3
