"""`kafkaio.aiokafka.AIOKafkaProducer` and aiokafka's, on Apache Kafka.

`tests/unit/aiokafka/test_producer.py` has the same programs on the embedded broker, and
all that a real one cannot be made to do.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.unit.aiokafka.side import SIDES, Side, side

pytestmark = [pytest.mark.timeout(120), pytest.mark.kafka_versions("2.8+")]


@pytest.fixture
def it(name: str) -> Side:
    return side(name)


async def committed(servers: str, topic: str) -> Mapping[int, Sequence[bytes | None]]:
    """Return the values that readers of committed records see, by partition."""
    found: dict[int, list[bytes | None]] = {}
    async with kafkaio.Client(servers) as client:
        numbers = (await client.partitions_for(topic))[topic]
    places = [kafkaio.TopicPartition(topic, number) for number in numbers]
    async with kafkaio.Consumer(
        servers,
        assign=places,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        ends = await consumer.end_offsets(places)
        while [tp for tp, end in ends.items() if await consumer.position(tp) < end]:
            for record in (await consumer.poll(timeout=0.1)).records:
                found.setdefault(record.partition, []).append(record.value)
    return found


@SIDES
@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_batches_and_futures(
    it: Side, real_kafka: Kafka, topic: TopicFactory, compression: str | None
) -> None:
    name = topic(partitions=2)
    servers = real_kafka.bootstrap_servers
    # Not older than what a broker keeps.
    stamp = time.time_ns() // 1_000_000 - 60_000
    async with it.producer(servers, compression_type=compression) as producer:
        assert await producer.partitions_for(name) == {0, 1}
        at = await producer.send_and_wait(
            name, b"first" * 100, partition=0, timestamp_ms=stamp
        )
        assert (at.partition, at.offset, at.timestamp) == (0, 0, stamp)
        assert at.timestamp_type == 0
        futures = [await producer.send(name, b"%d" % n, partition=0) for n in range(50)]
        await producer.flush()
        assert [each.result().offset for each in futures] == [*range(1, 51)]
        batch = producer.create_batch()
        for number in range(50):
            batch.append(timestamp=None, key=None, value=b"%d" % number)
        future = await producer.send_batch(batch, name, partition=1)
        assert (await future).offset == 0
    numbers = [b"%d" % n for n in range(50)]
    assert await committed(servers, name) == {0: [b"first" * 100, *numbers], 1: numbers}


@SIDES
@pytest.mark.parametrize("options", [{"acks": 0}, {"acks": "all"}, {"acks": 1}])
async def test_each_number_of_acks(
    it: Side, real_kafka: Kafka, topic: TopicFactory, options: dict[str, Any]
) -> None:
    name = topic(partitions=1)
    servers = real_kafka.bootstrap_servers
    async with it.producer(servers, **options) as producer:
        results = [await producer.send_and_wait(name, b"%d" % n) for n in range(3)]
    offsets = [each and each.offset for each in results]
    assert offsets == ([None] * 3 if options["acks"] == 0 else [0, 1, 2])
    found = await committed(servers, name)
    assert found == {0: [b"0", b"1", b"2"]}


@SIDES
async def test_a_topic_is_created_when_it_is_used(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=1)
    async with kafkaio.Admin(real_kafka.bootstrap_servers) as admin:
        await admin.delete_topics([name])
    other = f"{name}-created"
    async with it.producer(real_kafka.bootstrap_servers) as producer:
        assert (await producer.send_and_wait(other, b"v")).offset == 0
    async with kafkaio.Admin(real_kafka.bootstrap_servers) as admin:
        await admin.delete_topics([other])


@SIDES
async def test_keys_meet_in_one_partition(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=5)
    servers = real_kafka.bootstrap_servers
    async with (
        side("aiokafka").producer(servers) as theirs,
        it.producer(servers, key_serializer=str.encode) as producer,
    ):
        for number in range(20):
            key = f"customer-{number}"
            at = await producer.send_and_wait(name, b"v", key=key)
            there = await theirs.send_and_wait(name, b"v", key=key.encode())
            assert at.partition == there.partition


@SIDES
async def test_a_copy_in_transactions(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    source, target = topic(partitions=2), topic(partitions=2)
    servers, group = real_kafka.bootstrap_servers, f"group-{uuid.uuid4()}"
    places = [kafkaio.TopicPartition(source, number) for number in range(2)]
    async with kafkaio.Producer(servers) as producer:
        for tp in places:
            for number in range(40):
                await producer.enqueue(source, b"%d" % number, partition=tp.partition)
    async with (
        kafkaio.Consumer(
            servers, assign=places, auto_offset_reset="earliest"
        ) as consumer,
        it.producer(servers, transactional_id=f"copy-{uuid.uuid4()}") as producer,
    ):
        offsets: dict[object, int] = {}
        number = 0
        while sum(offsets.values()) < 80:
            poll = await consumer.poll(timeout=5, max_records=10)
            number += 1
            for again in (True, False) if number % 3 == 0 else (False,):
                await producer.begin_transaction()
                for record in poll.records:
                    await producer.send(
                        target, record.value, partition=record.partition
                    )
                    tp = it.top.TopicPartition(source, record.partition)
                    offsets[tp] = record.offset + 1
                await producer.send_offsets_to_transaction(offsets, group)
                if again:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
    wanted = [b"%d" % n for n in range(40)]
    assert await committed(servers, target) == {0: wanted, 1: wanted}
    async with kafkaio.Client(servers) as client:
        found = await client.committed(group, places)
    assert {tp: at and at.offset for tp, at in found.items()} == dict.fromkeys(
        places, 40
    )


@SIDES
async def test_one_producer_fences_another(
    it: Side, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name, servers = topic(partitions=1), real_kafka.bootstrap_servers
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    both = {"transactional_id": f"fenced-{uuid.uuid4()}"}
    async with it.producer(servers, **both) as older:
        async with older.transaction():
            await older.send_and_wait(name, b"older")
        await older.begin_transaction()
        await older.send_and_wait(name, b"left open")
        async with it.producer(servers, **both) as newer, newer.transaction():
            await newer.send_and_wait(name, b"newer")
        with pytest.raises(it.errors.ProducerFenced):
            await older.commit_transaction()
    assert await committed(servers, name) == {0: [b"older", b"newer"]}


async def test_row_a_transaction_that_takes_too_long(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    """The producer of aiokafka is over; that of kafkaio can go on."""
    name, servers = topic(partitions=1), real_kafka.bootstrap_servers
    it = side("kafkaio.aiokafka")
    transactional = f"late-{uuid.uuid4()}"
    async with (
        it.producer(
            servers, transactional_id=transactional, transaction_timeout_ms=1_000
        ) as producer,
        kafkaio.Admin(servers) as admin,
    ):
        await producer.begin_transaction()
        await producer.send_and_wait(name, b"late")
        while True:
            found = await admin.describe_transactions([transactional])
            if found[transactional].state.lower() == "completeabort":
                break
            await asyncio.sleep(0.2)
        with pytest.raises(it.errors.ProducerFenced):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(name, b"next")
    assert await committed(servers, name) == {0: [b"next"]}
