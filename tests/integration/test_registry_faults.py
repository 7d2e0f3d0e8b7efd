"""A registry that is dead, slow, refuses or lies: no record is lost, none goes wrong.

What goes out has its schema or does not go out; what comes in is read later, or goes to
the dead letter as it came. The faults are those of the registry in process; Apicurio, a
real one, dies and hangs as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest

import kafkaio
from kafkaio import TopicPartition
from kafkaio.registry import Avro, Registry
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.apicurio import Apicurio
from tests.support.patience import HANGS, NEVER_MS

#: Seconds after which the client gives up a registry that does not answer.
SOON: Final = 0.3
#: The same, where it answers again with this limit.
LATER: Final = 3.0
BY_ID: Final = "GET /schemas/ids/*"


def limit(how: str) -> float:
    """Seconds that a request may take: few only where the registry is silent."""
    return LATER if how == "silent" else HANGS


@dataclass
class Order:
    id: int


@dataclass
class Refund:
    id: int


#: What passes, so that the client tries again.
PASSING: Final[dict[str, dict[str, Any]]] = {
    **{f"{status}": {"status": status} for status in (408, 500, 502, 503, 504)},
    "429": {"status": 429, "retry_after": 0.01},
    "lost before": {"disconnect": "before"},
    "lost after": {"disconnect": "after"},
}
passing = pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=name) for name, fault in PASSING.items()]
)


async def end_of(servers: str, topic: str) -> int:
    """The number of records that were ever sent to a topic."""
    tp = TopicPartition(topic, 0)
    async with kafkaio.Consumer(servers, assign=[tp]) as consumer:
        return (await consumer.end_offsets([tp]))[tp]


@asynccontextmanager
async def reading(
    servers: str, topic: str, serde: Any
) -> AsyncIterator[kafkaio.Consumer[Any, Any]]:
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(
            servers,
            assign=[TopicPartition(topic, 0)],
            auto_offset_reset="earliest",
            value_deserializer=serde,
            default_api_timeout_ms=NEVER_MS,
        ) as consumer,
    ):
        yield consumer


async def write(servers: str, topic: str, url: str, *numbers: int) -> None:
    orders = kafkaio.Topic(topic, value=Avro(Order, Registry(url)))
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many(orders, [Order(number) for number in numbers])


# ---- producing -----------------------------------------------------------------------


@passing
async def test_a_registration_that_fails_is_tried_again(
    real_kafka: Kafka,
    kafka_registry: SchemaRegistry,
    topic: TopicFactory,
    fault: dict[str, Any],
) -> None:
    servers, url, name = real_kafka.bootstrap_servers, kafka_registry.url, topic()
    rule = kafka_registry.faults.on("POST *", times=2, **fault)
    await write(servers, name, url, 1, 2)
    assert rule.count == 2
    async with reading(servers, name, Avro(Order, Registry(url))) as consumer:
        assert [(await anext(consumer)).value.id for _ in range(2)] == [1, 2]
    # Also what was done and not answered was done once.
    assert await Registry(url).versions(f"{name}-value") == [1]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (404, 40403, kafkaio.SchemaError),
        (409, 409, kafkaio.SchemaError),
        (422, 42201, kafkaio.SchemaError),
        (401, 40101, kafkaio.RegistryError),
        (403, 40301, kafkaio.RegistryError),
    ],
)
async def test_what_is_refused_is_not_sent(
    real_kafka: Kafka,
    kafka_registry: SchemaRegistry,
    topic: TopicFactory,
    status: int,
    code: int,
    error: type[kafkaio.RegistryError],
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    orders = kafkaio.Topic(name, value=Avro(Order, Registry(kafka_registry.url)))
    rule = kafka_registry.faults.on("POST *", status=status, code=code, message="no")
    async with kafkaio.Producer(servers) as producer:
        for send in (producer.send, producer.enqueue):
            with pytest.raises(error) as refused:
                await send(orders, Order(1))
            assert type(refused.value) is error
            assert (refused.value.status, refused.value.code) == (status, code)
            assert not refused.value.retriable
        with pytest.raises(error):
            await producer.send_many(orders, [Order(1), Order(2)])
        # Each call has asked once: what is refused is not asked again in vain.
        assert rule.count == 3
        await producer.flush()
        assert await end_of(servers, name) == 0
        kafka_registry.faults.clear()
        await producer.send(orders, Order(1))
    assert await end_of(servers, name) == 1


async def test_who_only_looks_up_is_told_what_is_not_there(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    registry = Registry(kafka_registry.url)
    orders = kafkaio.Topic(name, value=Avro(Order, registry, register=False))
    async with kafkaio.Producer(servers) as producer:
        with pytest.raises(kafkaio.SchemaError) as missing:
            await producer.send(orders, Order(1))
        assert missing.value.subject == f"{name}-value"
        assert missing.value.code == 40401
        await Avro(Order, registry).prepare(name)
        await producer.send(orders, Order(1))
    assert await end_of(servers, name) == 1


@pytest.mark.parametrize("how", ["dead", "silent", "wrong body"])
async def test_nothing_goes_out_without_its_schema(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory, how: str
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    registry = Registry(kafka_registry.url, timeout=limit(how), retries=0)
    orders = kafkaio.Topic(name, value=Avro(Order, registry))
    async with asyncio.timeout(HANGS), kafkaio.Producer(servers) as producer:
        if how == "dead":
            await kafka_registry.stop()
        elif how == "silent":
            kafka_registry.faults.on("POST *", hang=True)
        else:
            kafka_registry.faults.on("POST *", body=b"<html>")
        with pytest.raises(kafkaio.RegistryError) as failed:
            await producer.send(orders, Order(1))
        assert failed.value.retriable is (how != "wrong body")
        await producer.flush()
        assert await end_of(servers, name) == 0
        await kafka_registry.stop()
        kafka_registry.faults.clear()
        await kafka_registry.start()
        await producer.send(orders, Order(1))
        # From now on the schema is known, and the registry may go.
        await kafka_registry.stop()
        await producer.send(orders, Order(2))
    assert await end_of(servers, name) == 2


async def test_a_send_that_waits_too_long_for_a_schema_sends_nothing(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    registry = Registry(kafka_registry.url, timeout=HANGS)
    orders = kafkaio.Topic(name, value=Avro(Order, registry))
    hanging = kafka_registry.faults.on("POST *", hang=True)
    async with kafkaio.Producer(servers, max_block_ms=300) as producer:
        with pytest.raises(kafkaio.KafkaTimeout):
            await producer.send(orders, Order(1))
        kafka_registry.faults.remove(hanging)
        await producer.flush()
        assert await end_of(servers, name) == 0


# ---- consuming -----------------------------------------------------------------------


@passing
async def test_a_look_up_that_fails_is_tried_again(
    real_kafka: Kafka,
    kafka_registry: SchemaRegistry,
    topic: TopicFactory,
    fault: dict[str, Any],
) -> None:
    servers, url, name = real_kafka.bootstrap_servers, kafka_registry.url, topic()
    await write(servers, name, url, 1, 2, 3)
    rule = kafka_registry.faults.on(BY_ID, times=2, **fault)
    async with reading(servers, name, Avro(Order, Registry(url))) as consumer:
        assert [(await anext(consumer)).value.id for _ in range(3)] == [1, 2, 3]
    assert rule.count == 2


@pytest.mark.parametrize("how", ["500", "429", "lost", "silent", "dead"])
async def test_a_record_waits_for_its_registry(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory, how: str
) -> None:
    """The failure is told, the position stays, and the next step reads the record."""
    servers, url, name = real_kafka.bootstrap_servers, kafka_registry.url, topic()
    await write(servers, name, url, 1, 2)
    serde = Avro(Order, Registry(url, timeout=limit(how), retries=0))
    faults = kafka_registry.faults
    match how:
        case "dead":
            await kafka_registry.stop()
        case "silent":
            faults.on(BY_ID, hang=True)
        case "lost":
            faults.on(BY_ID, disconnect="before")
        case _:
            faults.on(BY_ID, status=int(how))
    async with reading(servers, name, serde) as consumer:
        for _ in range(2):
            with pytest.raises(kafkaio.RegistryError) as failed:
                await anext(consumer)
            assert failed.value.retriable
            assert await consumer.position(TopicPartition(name, 0)) == 0
        await kafka_registry.stop()
        faults.clear()
        await kafka_registry.start()
        assert [(await anext(consumer)).value.id for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("how", ["unknown id", "lie", "unknown byte", "truncated"])
async def test_a_record_that_cannot_be_read_is_named_and_passed_over(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory, how: str
) -> None:
    servers, url, name = real_kafka.bootstrap_servers, kafka_registry.url, topic()
    await write(servers, name, url, 1)
    raw = {
        "unknown id": b"\0\0\0\0\x63\x02",
        "lie": b"\0\0\0\0\x02\x02",
        "unknown byte": b"\x07\0\0\0\x01\x02",
        "truncated": b"\0\0\0",
    }[how]
    if how == "lie":
        await Avro(Refund, Registry(url)).prepare("refunds")
    async with kafkaio.Producer(servers) as plain:
        await plain.send(name, raw, headers=[("trace", b"1")])
    await write(servers, name, url, 2)
    async with reading(servers, name, Avro(Order, Registry(url))) as consumer:
        assert (await anext(consumer)).value == Order(1)
        for _ in range(2):
            with pytest.raises(kafkaio.DeserializationError) as failed:
                await anext(consumer)
            error = failed.value
            assert (error.topic_partition, error.offset) == ((name, 0), 1)
            assert not error.is_key
            assert error.record.value == raw
            assert error.record.headers == (("trace", b"1"),)
        if how == "unknown id":
            assert isinstance(error.__cause__, kafkaio.SchemaError)
            # That it is not there is remembered, and not asked for again.
            assert kafka_registry.count("GET /schemas/ids/99") == 1
        consumer.seek(TopicPartition(name, 0), error.offset + 1)
        assert (await anext(consumer)).value == Order(2)


# ---- the dead letter -----------------------------------------------------------------


class Retrying:
    """An observer that waits for a step that is repeated."""

    def __init__(self) -> None:
        self.seen: asyncio.Queue[BaseException] = asyncio.Queue()

    def retrying(
        self, what: str, attempt: int, delay: float, cause: BaseException
    ) -> None:
        if isinstance(cause, kafkaio.RegistryError):
            self.seen.put_nowait(cause)


@asynccontextmanager
async def running(
    servers: str, name: str, dead: str, serde: Any, observer: Retrying
) -> AsyncIterator[asyncio.Queue[Any]]:
    """Handle the records of a topic in a group; what is handled comes by a queue."""
    handled: asyncio.Queue[Any] = asyncio.Queue()

    async def handle(record: Any) -> None:
        handled.put_nowait((record.partition, record.value.id))

    async with (
        asyncio.timeout(HANGS),
        kafkaio.Producer(servers) as producer,
        kafkaio.Consumer(
            servers,
            topics=name,
            group_id=name,
            auto_offset_reset="earliest",
            value_deserializer=serde,
            observer=observer,
            retry_backoff_ms=10,
        ) as consumer,
        asyncio.TaskGroup() as group,
    ):
        letters = kafkaio.DeadLetter(producer, dead)
        task = group.create_task(
            consumer.run(handle, ordering="partition", dead_letter=letters)
        )
        yield handled
        await consumer.close()
        await task


async def test_what_is_poisoned_goes_to_the_dead_letter_with_its_bytes(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers, url, name, dead = (
        real_kafka.bootstrap_servers,
        kafka_registry.url,
        topic(),
        topic(),
    )
    poisoned = [b"\x07nonsense", b"\0\0", b"\0\0\0\0\x63\x02", b"\0\0\0\0\x01\x80"]
    await write(servers, name, url, 1)
    async with kafkaio.Producer(servers) as plain:
        for raw in poisoned:
            await plain.send(name, raw, key=b"k", headers=[("trace", b"1")])
    await write(servers, name, url, 2)
    serde = Avro(Order, Registry(url))
    async with running(servers, name, dead, serde, Retrying()) as handled:
        assert [await handled.get(), await handled.get()] == [(0, 1), (0, 2)]
    assert await end_of(servers, dead) == len(poisoned)
    async with kafkaio.Consumer(
        servers, assign=[TopicPartition(dead, 0)], auto_offset_reset="earliest"
    ) as reader:
        letters = [await anext(reader) for _ in poisoned]
        assert [letter.value for letter in letters] == poisoned
        for offset, letter in enumerate(letters, start=1):
            headers = dict(letter.headers)
            assert (letter.key, headers["trace"]) == (b"k", b"1")
            assert headers["dead-letter-topic"] == name.encode()
            assert headers["dead-letter-offset"] == str(offset).encode()
    # All of them are finished.
    tp = TopicPartition(name, 0)
    async with kafkaio.Consumer(servers, assign=[tp], group_id=name) as consumer:
        committed = (await consumer.committed([tp]))[tp]
        assert committed is not None
        assert committed.offset == len(poisoned) + 2


async def test_a_registry_that_is_down_poisons_nothing(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    servers, url, name, dead = (
        real_kafka.bootstrap_servers,
        kafka_registry.url,
        topic(2),
        topic(),
    )
    # Partition 0 has a schema that is not known yet, partition 1 one that is.
    known = Registry(url, timeout=HANGS, retries=0)
    newer: Any = Avro(
        {
            "type": "record",
            "name": "Order",
            "doc": "another version",
            "fields": [{"name": "id", "type": "long"}],
        },
        Registry(url),
    )
    async with kafkaio.Producer(servers) as producer:
        old = kafkaio.Topic(name, value=Avro(Order, Registry(url)))
        await producer.send(old, Order(1), partition=1)
        for number in (10, 11):
            other = kafkaio.Topic(name, value=newer)
            await producer.send(other, {"id": number}, partition=0)
        await known.schema(1)
        rule = kafka_registry.faults.on("GET /schemas/ids/2", status=503)
        observer = Retrying()
        serde = Avro(Order, known)
        async with running(servers, name, dead, serde, observer) as handled:
            assert await handled.get() == (1, 1)
            # It is tried again and again, and told each time.
            for _ in range(3):
                error = await observer.seen.get()
                assert isinstance(error, kafkaio.RegistryError)
                assert error.status == 503
            # The other partition goes on meanwhile.
            for number in range(2, 20):
                await producer.send(old, Order(number), partition=1)
                assert await handled.get() == (1, number)
            kafka_registry.faults.remove(rule)
            assert [await handled.get(), await handled.get()] == [(0, 10), (0, 11)]
    assert await end_of(servers, dead) == 0


# ---- a real registry -----------------------------------------------------------------


async def read(consumer: kafkaio.Consumer[bytes, Order]) -> int:
    """The next order; a registry that has just started may take longer than `SOON`."""
    async with asyncio.timeout(HANGS):
        while True:
            with suppress(kafkaio.RegistryError):
                return (await anext(consumer)).value.id


@pytest.mark.not_embedded("a real registry, beside a real Kafka")
async def test_apicurio_dies_and_comes_back(
    real_kafka: Kafka, apicurio: Apicurio, topic: TopicFactory
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    url = apicurio.url
    await write(servers, name, url, 1)
    orders = kafkaio.Topic(name, value=Avro(Order, Registry(url)))
    serde = Avro(Order, Registry(url, timeout=SOON, retries=0))
    new = kafkaio.Topic(f"{name}-new", value=Avro(Refund, Registry(url, timeout=SOON)))
    async with (
        kafkaio.Producer(servers) as producer,
        reading(servers, name, serde) as consumer,
    ):
        await producer.send(orders, Order(2))
        for ends in (apicurio.pause, apicurio.stop):
            await asyncio.to_thread(ends)
            with pytest.raises(kafkaio.RegistryError) as failed:
                await anext(consumer)
            assert failed.value.retriable
            with pytest.raises(kafkaio.RegistryError):
                await producer.send(new, Refund(1))
            # What is known needs no registry.
            await producer.send(orders, Order(3))
        apicurio.start()
        await asyncio.to_thread(apicurio.wait)
        assert [await read(consumer) for _ in range(4)] == [1, 2, 3, 3]
        with pytest.raises(kafkaio.SchemaError) as unknown:
            await Registry(url).schema(1_000_000)
        assert unknown.value.status == 404
