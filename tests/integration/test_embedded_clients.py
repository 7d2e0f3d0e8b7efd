"""Other people's clients, and ours, against the embedded broker."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kafkaio import Consumer, Producer, TopicPartition
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import (
    disconnect_after_write,
    disconnect_before_write,
    drop,
    duplicate,
    error,
    reorder,
)
from kafkaio.testing._broker.versions import RELEASES
from tests.support.patience import HANGS

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("runs on embedded brokers of its own in any case"),
]

COUNT = 300


@pytest.fixture(params=RELEASES)
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    topics = {"t": 3}
    async with Broker(nodes=3, topics=topics, as_version=request.param) as broker:
        yield broker


async def read_all(broker: Broker, topic: str, count: int) -> dict[int, list[bytes]]:
    """The values of each partition, in the order of their offsets."""
    found: dict[int, list[bytes]] = {}
    async with (
        asyncio.timeout(HANGS),
        Consumer(
            broker.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
        ) as consumer,
    ):
        async for record in consumer:
            found.setdefault(record.partition, []).append(record.value or b"")
            count -= 1
            if not count:
                break
    return found


async def test_kafkaio(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(COUNT):
            await producer.enqueue("t", b"%d" % number, partition=number % 3)
    found = await read_all(broker, "t", COUNT)
    assert found == {
        index: [b"%d" % number for number in range(index, COUNT, 3)]
        for index in range(3)
    }


async def test_aiokafka(broker: Broker) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    servers = broker.bootstrap_servers
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True
    )
    await producer.start()
    for number in range(COUNT):
        await producer.send("t", b"%d" % number, partition=number % 3)
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest"
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition("t", index) for index in range(3)])
    values = []
    async with asyncio.timeout(HANGS):
        while len(values) < COUNT:
            batches = await consumer.getmany(timeout_ms=500)
            values += [record.value for some in batches.values() for record in some]
    await consumer.stop()
    assert sorted(values, key=int) == [b"%d" % number for number in range(COUNT)]


async def test_confluent(broker: Broker) -> None:
    pytest.importorskip("confluent_kafka")
    produced, consumed, topics = await asyncio.to_thread(
        with_confluent, broker.bootstrap_servers
    )
    assert produced == [None] * COUNT
    assert sorted(consumed, key=int) == [b"%d" % number for number in range(COUNT)]
    assert {"t", "made"} <= topics


def produce_with_confluent(servers: str, client_id: str = "rdkafka") -> list[Any]:
    """The errors of all records, None for none."""
    import confluent_kafka

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "client.id": client_id,
            "enable.idempotence": True,
            "log_level": 0,
        }
    )
    produced: list[Any] = []
    told: Callable[[Any, Any], None] = lambda err, _: produced.append(err)  # noqa: E731
    for number in range(COUNT):
        producer.produce("t", b"%d" % number, partition=number % 3, on_delivery=told)
        if number % 20 == 0:
            producer.flush(20)
    producer.flush(20)
    return produced


def with_confluent(servers: str) -> tuple[list[Any], list[bytes], set[str]]:
    import confluent_kafka
    from confluent_kafka.admin import AdminClient, NewTopic

    common = {"bootstrap.servers": servers, "log_level": 0}
    produced = produce_with_confluent(servers)
    consumer = confluent_kafka.Consumer(
        common | {"group.id": "g", "enable.auto.commit": False}
    )
    start = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([confluent_kafka.TopicPartition("t", i, start) for i in range(3)])
    consumed: list[bytes] = []
    for _ in range(40):
        if len(consumed) >= COUNT:
            break
        for message in consumer.consume(COUNT, 0.5):
            assert message.error() is None
            consumed.append(message.value())
    consumer.close()
    admin = AdminClient(common)
    for made in admin.create_topics([NewTopic("made", 2, 2)]).values():
        made.result(10)
    time.sleep(0.1)  # a broker answers before word of a topic has got round
    return produced, consumed, set(admin.list_topics(timeout=10).topics)


async def test_nothing_is_lost_or_repeated_through_faults() -> None:
    async with Broker(nodes=3, topics={"t": 3}) as broker:
        faults = broker.faults
        rules = [
            faults.on("Produce", disconnect_after_write(rate=0.2, seed=1)),
            faults.on("Produce", disconnect_before_write(rate=0.1, seed=2)),
            faults.on(
                "Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS, rate=0.1, seed=3)
            ),
            faults.on("Produce", duplicate(rate=0.2, seed=4), partition=("t", 1)),
            faults.on("Produce", reorder(rate=0.2, seed=5, seconds=0.01)),
        ]
        async with Producer(broker.bootstrap_servers, retry_backoff_ms=5) as producer:
            for number in range(COUNT):
                await producer.enqueue("t", b"%d" % number, partition=number % 3)
                if number % 10 == 0:
                    await producer.flush()
                if number % 100 == 50:
                    tp = TopicPartition("t", number % 3)
                    next_leader = (broker.control.leader(tp) + 1) % 3
                    broker.control.move_leader(tp, next_leader)
        struck = [rule.count for rule in rules]
        faults.clear()
        found = await read_all(broker, "t", COUNT)
        assert found == {
            index: [b"%d" % number for number in range(index, COUNT, 3)]
            for index in range(3)
        }
        assert all(struck), struck


async def test_confluent_through_faults() -> None:
    async with Broker(nodes=3, topics={"t": 3}) as broker:
        faults = broker.faults
        rules = [
            faults.on("Produce", duplicate(rate=0.5, seed=1), client_id="theirs"),
            faults.on("Produce", disconnect_after_write(times=2), client_id="theirs"),
        ]
        unused = faults.on("Produce", drop(), client_id="another")
        produced = await asyncio.to_thread(
            produce_with_confluent, broker.bootstrap_servers, client_id="theirs"
        )
        assert produced == [None] * COUNT
        found = await read_all(broker, "t", COUNT)
        assert found == {
            index: [b"%d" % number for number in range(index, COUNT, 3)]
            for index in range(3)
        }
        assert [rule.count > 0 for rule in [*rules, unused]] == [True, True, False]


async def test_a_node_is_killed_and_comes_back() -> None:
    async with Broker(nodes=3, topics={"t": 3}) as broker:
        async with Producer(broker.bootstrap_servers, retry_backoff_ms=5) as producer:
            for number in range(COUNT):
                await producer.enqueue("t", b"%d" % number, partition=number % 3)
                if number == 100:
                    await broker.control.kill(1)
                if number == 200:
                    await broker.control.restart(1)
                if number % 10 == 0:
                    await asyncio.sleep(0.001)
        found = await read_all(broker, "t", COUNT)
        assert found == {
            index: [b"%d" % number for number in range(index, COUNT, 3)]
            for index in range(3)
        }
