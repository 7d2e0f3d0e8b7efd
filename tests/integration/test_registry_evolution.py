"""Schemas change: what is refused is an error before anything is sent.

Each test runs on Apicurio, a real registry, and on the one in process.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

import kafkaio
from kafkaio import TopicPartition
from kafkaio.registry import Avro, JsonSchema, Registry, Schema
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.patience import HANGS


def versions() -> tuple[type, type, type]:
    """Three classes of one name, as three releases of a program have them."""

    def first() -> type:
        @dataclass
        class Order:
            id: int
            amount: int

        return Order

    def second() -> type:
        @dataclass
        class Order:
            id: int
            amount: int
            currency: str = "EUR"
            tags: list[str] = field(default_factory=list)

        return Order

    def refused() -> type:
        @dataclass
        class Order:
            id: int
            amount: str

        return Order

    return first(), second(), refused()


First, Second, Refused = versions()
AMOUNT_AS_TEXT: Final = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "amount", "type": "string"}
]}"""
AMOUNT: Final = AMOUNT_AS_TEXT.replace('"string"', '"long"')


@pytest.fixture(
    params=[
        "in process",
        pytest.param(
            "apicurio",
            marks=pytest.mark.not_embedded("a real registry, beside a real Kafka"),
        ),
    ]
)
def url(request: pytest.FixtureRequest) -> str:
    """The address of each registry."""
    if request.param == "apicurio":
        return str(request.getfixturevalue("apicurio").url)
    registry: SchemaRegistry = request.getfixturevalue("kafka_registry")
    return registry.url


async def ends(servers: str, topic: str) -> int:
    """The number of records that a topic has ever had."""
    async with kafkaio.Consumer(servers, assign=[TopicPartition(topic, 0)]) as found:
        offsets = await found.end_offsets([TopicPartition(topic, 0)])
    return offsets[TopicPartition(topic, 0)]


async def values(servers: str, topic: Any, count: int) -> list[Any]:
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(servers, topics=topic, auto_offset_reset="earliest") as read,
    ):
        return [(await anext(read)).value for _ in range(count)]


@pytest.mark.parametrize("kind", ["class", "text"])
async def test_a_change_that_is_refused_sends_nothing(
    real_kafka: Kafka, topic: TopicFactory, url: str, kind: str
) -> None:
    registry, name = Registry(url), topic()
    subject = f"{name}-value"
    servers = real_kafka.bootstrap_servers
    if kind == "class":
        old: Any = Avro(First, registry)
        new: Any = Avro(Refused, registry)
        value: Any = Refused(1, "seven")
    else:
        old, new = Avro(AMOUNT, registry), Avro(AMOUNT_AS_TEXT, registry)
        value = {"id": 1, "amount": "seven"}
    await old.prepare(name)
    await registry.set_compatibility("BACKWARD", subject)
    orders = kafkaio.Topic(name, value=new)
    async with kafkaio.Producer(servers) as producer:
        for attempt in (producer.send, producer.enqueue):
            with pytest.raises(kafkaio.SchemaError) as refused:
                await attempt(orders, value)
            assert refused.value.subject == subject
            assert refused.value.status == 409
            assert refused.value.reason
            assert not refused.value.retriable
        with pytest.raises(kafkaio.SchemaError):
            await producer.send_many(orders, [value] * 3)
        await producer.flush()
        assert await ends(servers, name) == 0
        assert await registry.versions(subject) == [1]
        # The others of the same producer go on.
        good: Any = {"id": 1, "amount": 7} if kind == "text" else First(1, 7)
        await producer.send(kafkaio.Topic(name, value=old), good)
    assert await ends(servers, name) == 1


async def test_it_is_found_out_before_the_program_begins(
    real_kafka: Kafka, topic: TopicFactory, url: str
) -> None:
    registry, name = Registry(url), topic()
    subject = f"{name}-value"
    await Avro(First, registry).prepare(name)
    await registry.set_compatibility("BACKWARD", subject)
    with pytest.raises(kafkaio.SchemaError) as refused:
        await Avro(Refused, registry).prepare(name)
    assert refused.value.subject == subject
    schema = Schema(AMOUNT_AS_TEXT)
    found = await registry.check(subject, schema)
    assert not found.is_compatible
    # Apicurio says that, and not why.
    assert found.reasons or "ccompat" in url
    assert (await registry.check(subject, Schema(AMOUNT))).is_compatible


async def test_readers_of_both_ages_read_both(
    real_kafka: Kafka, topic: TopicFactory, url: str
) -> None:
    registry, name = Registry(url), topic()
    subject = f"{name}-value"
    servers = real_kafka.bootstrap_servers
    old = kafkaio.Topic(name, value=Avro(First, registry))
    new = kafkaio.Topic(name, value=Avro(Second, registry))
    async with kafkaio.Producer(servers) as producer:
        await producer.send(old, First(1, 10))
        await registry.set_compatibility("BACKWARD", subject)
        await producer.send(new, Second(2, 20, "USD", ["a"]))
        await producer.send(old, First(3, 30))
    assert await registry.versions(subject) == [1, 2]
    # Each with a client that has nothing cached, as another program has.
    reader = Avro(First, Registry(url))
    found = await values(servers, kafkaio.Topic(name, value=reader), 3)
    assert found == [First(1, 10), First(2, 20), First(3, 30)]
    reader = Avro(Second, Registry(url))
    found = await values(servers, kafkaio.Topic(name, value=reader), 3)
    assert found == [Second(1, 10), Second(2, 20, "USD", ["a"]), Second(3, 30)]
    plain: Any = Avro(AMOUNT, Registry(url), reader_schema=AMOUNT)
    found = await values(servers, kafkaio.Topic(name, value=plain), 3)
    assert found[1] == {"id": 2, "amount": 20}


async def test_json_of_both_ages(
    real_kafka: Kafka, topic: TopicFactory, kafka_registry: SchemaRegistry
) -> None:
    registry, name = Registry(kafka_registry.url), topic()
    kafka_registry.set_compatibility("NONE", f"{name}-value")
    servers = real_kafka.bootstrap_servers
    old = kafkaio.Topic(name, value=JsonSchema(First, registry))
    new = kafkaio.Topic(name, value=JsonSchema(Second, registry))
    async with kafkaio.Producer(servers) as producer:
        await producer.send(old, First(1, 10))
        await producer.send(new, Second(2, 20, "USD", ["a"]))
    assert await values(servers, new, 2) == [Second(1, 10), Second(2, 20, "USD", ["a"])]
