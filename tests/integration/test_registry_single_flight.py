"""How often a registry is asked: once for each schema, whoever asks, and never again.

The registry is the one in process, which counts and can hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import pytest

import kafkaio
from kafkaio import TopicPartition
from kafkaio.registry import Avro, Registry, Schema
from kafkaio.serde import DeserializationContext
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS, NEVER_MS

REGISTRATIONS: Final = "POST /subjects/*/versions"
BY_ID: Final = "GET /schemas/ids/*"
TASKS: Final = 1_000
ORDER: Final = """
{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
"""
DOCUMENTED: Final = ORDER.replace('"fields"', '"doc": "again", "fields"')


@dataclass
class Order:
    id: int


@pytest.mark.timeout(180)
async def test_a_thousand_first_records_register_once(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    serde = Avro(Order, Registry(kafka_registry.url))
    orders = kafkaio.Topic(topic(4), value=serde)
    async with kafkaio.Producer(real_kafka.bootstrap_servers) as producer:
        async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(producer.send(orders, Order(number)))
        assert kafka_registry.count(REGISTRATIONS) == 1
        asked = len(kafka_registry.requests)
        for number in range(100):
            producer.enqueue_nowait(orders, Order(number))
        await producer.flush()
        await producer.send_many(orders, [Order(number) for number in range(100)])
    assert len(kafka_registry.requests) == asked


async def test_a_thousand_first_reads_ask_once_for_each_id(
    kafka_registry: SchemaRegistry,
) -> None:
    context = DeserializationContext("orders", [], is_key=False)
    client = Registry(kafka_registry.url)
    reader: Any = Avro(ORDER, client)
    frames = []
    for number, text in enumerate((ORDER, DOCUMENTED), start=1):
        assert kafka_registry.register(f"{number}", Schema(text)).id == number
        frames.append(b"\0" + number.to_bytes(4) + b"\x0e")  # the order with the id 7

    async def read(frame: bytes) -> Any:
        result = reader.deserialize(frame, context)
        return await result if isinstance(result, Awaitable) else result

    async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(frames[number % 2])) for number in range(TASKS)]
    assert all(task.result() == {"id": 7} for task in tasks)
    assert [each.path for each in kafka_registry.requests] == [
        "/schemas/ids/1",
        "/schemas/ids/2",
    ]
    # From now on the result is there at once.
    for frame in frames:
        assert reader.deserialize(frame, context) == {"id": 7}
    assert kafka_registry.count(BY_ID) == 2


@pytest.mark.timeout(180)
async def test_consumers_of_one_registry_share_what_it_knows(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers = real_kafka.bootstrap_servers
    name = topic(8)
    orders = kafkaio.Topic(name, value=Avro(Order, Registry(kafka_registry.url)))
    async with kafkaio.Producer(servers) as producer:
        for number in range(80):
            await producer.enqueue(orders, Order(number), partition=number % 8)
        await producer.flush()
    kafka_registry.requests.clear()
    client = Registry(kafka_registry.url)
    seen: list[int] = []

    async def consume(partition: int) -> None:
        # Each has a serde of its own; the registry is what they share.
        async with kafkaio.Consumer(
            servers,
            assign=[TopicPartition(name, partition)],
            auto_offset_reset="earliest",
            value_deserializer=Avro(Order, client),
        ) as consumer:
            for _ in range(10):
                seen.append((await anext(consumer)).value.id)

    async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
        for partition in range(8):
            group.create_task(consume(partition))
    assert sorted(seen) == list(range(80))
    assert kafka_registry.count(BY_ID) == 1
    assert len(kafka_registry.requests) == 1


# ---- an id for which the registry hangs ----------------------------------------------

OTHERS: Final = (1, 2, 3)
ROUNDS: Final = 100


@asynccontextmanager
async def consuming(
    servers: str, name: str, url: str
) -> AsyncIterator[tuple[asyncio.Queue[Any], asyncio.Task[None]]]:
    """Read all partitions in a task; records come by a queue."""
    # No limit of the client or of the consumer ends the wait: the test does.
    client = Registry(url, timeout=HANGS, retries=0)
    records: asyncio.Queue[Any] = asyncio.Queue()

    async def read(consumer: kafkaio.Consumer[Any, Any]) -> None:
        try:
            async for record in consumer:
                records.put_nowait(record)
        except kafkaio.KafkaError as error:
            records.put_nowait(error)

    async with kafkaio.Consumer(
        servers,
        assign=[TopicPartition(name, partition) for partition in range(4)],
        auto_offset_reset="earliest",
        value_deserializer=Avro(Order, client),
        default_api_timeout_ms=NEVER_MS,
        fetch_max_wait_ms=50,
    ) as consumer:
        task = asyncio.ensure_future(read(consumer))
        try:
            yield records, task
        finally:
            task.cancel()
            await asyncio.wait([task])


async def round_trips(
    producer: kafkaio.Producer[Any, Any],
    topic: Any,
    records: asyncio.Queue[Any],
    first: int,
) -> list[float]:
    """Send records to the other partitions, one by one; the seconds until each is read.

    Nothing else is read meanwhile.
    """
    seconds = []
    for number in range(first, first + ROUNDS):
        start = perf_counter()
        partition = OTHERS[number % len(OTHERS)]
        await producer.send(topic, Order(number), partition=partition)
        record = await records.get()
        seconds.append(perf_counter() - start)
        assert not isinstance(record, Exception), record
        assert (record.partition, record.value) == (partition, Order(number))
    return sorted(seconds)


@pytest.mark.timeout(240)
async def test_an_id_that_is_not_known_holds_back_its_partition_alone(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers, url, name = real_kafka.bootstrap_servers, kafka_registry.url, topic(4)
    orders = kafkaio.Topic(name, value=Avro(Order, Registry(url)))
    newer: Any = Avro(DOCUMENTED, Registry(url))
    other = kafkaio.Topic(name, value=newer)
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Producer(servers) as producer,
        consuming(servers, name, url) as (records, task),
    ):
        await round_trips(producer, orders, records, 0)  # everything is warm
        before = await round_trips(producer, orders, records, ROUNDS)
        # Another version of the schema: its id is 2, and nobody has asked for it.
        await newer.prepare(name)
        hanging = kafka_registry.faults.on("GET /schemas/ids/2", hang=True)
        for number in range(3):
            await producer.send(other, {"id": number}, partition=0)
            await producer.send(orders, Order(-number), partition=0)
        await kafka_registry.wait_for("GET /schemas/ids/2", timeout=HANGS)
        # Each of these is read while the registry hangs, and none of partition 0.
        during = await round_trips(producer, orders, records, 2 * ROUNDS)
        assert kafka_registry.count("GET /schemas/ids/2") == 1
        assert not task.done()
        kafka_registry.faults.remove(hanging)
        held = [await records.get() for _ in range(6)]
    assert not [each for each in held if isinstance(each, Exception)]
    assert [record.offset for record in held] == list(range(6))
    assert {record.partition for record in held} == {0}
    assert [record.value.id for record in held] == [0, 0, 1, -1, 2, -2]
    assert kafka_registry.count("GET /schemas/ids/2") == 1
    # That it is not waited for is shown above: a machine that is busy shows no more,
    # and of the slowest of them nothing.
    half = ROUNDS // 2
    shown = f"median before {before[half]:.4f} s, while it hangs {during[half]:.4f} s"
    assert during[half] < 10 * before[half] + 0.25, shown
