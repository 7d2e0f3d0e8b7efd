"""Records with schemas go to confluent-kafka's serdes and come from them.

The prefix form on Apicurio, a real registry; the form with headers, which needs a
registry that gives GUIDs, on the one in process.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

import kafkaio
from kafkaio.registry import Avro, JsonSchema, Protobuf, Registry
from kafkaio.testing import SchemaRegistry
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.apicurio import Apicurio
from tests.support.confluent import (
    Language,
    read_theirs,
    send_theirs,
    their_serdes,
)
from tests.support.patience import HANGS
from tests.support.shop import Order, OrderMessage, as_message, orders

LANGUAGES: tuple[Language, ...] = ("avro", "json", "protobuf")
on_apicurio = pytest.mark.not_embedded("a real registry, beside a real Kafka")


def serde(
    language: Language, registry: Registry, wire: Literal["prefix", "header"]
) -> Any:
    if language == "avro":
        return Avro(Order, registry, namespace="shop", wire=wire)
    if language == "json":
        return JsonSchema(Order, registry, wire=wire)
    return Protobuf(OrderMessage, registry, wire=wire)


def ours(language: Language) -> list[Any]:
    """The values that kafkaio's serdes take and return."""
    return [*map(as_message, orders())] if language == "protobuf" else orders()


def theirs(language: Language) -> list[Any]:
    """The same values for confluent's."""
    if language == "protobuf":
        return ours(language)
    return [order.as_dict() for order in orders()]


async def read(servers: str, topic: Any, count: int) -> list[Any]:
    options: dict[str, Any] = {"auto_offset_reset": "earliest"}
    found: list[Any] = []
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(servers, topics=topic, **options) as consumer,
    ):
        while len(found) < count:
            found.append((await anext(consumer)).value)
    return found


async def from_us_to_them(
    servers: str,
    url: str,
    name: str,
    language: Language,
    wire: Any,
    *,
    is_apicurio: bool = False,
) -> None:
    topic = kafkaio.Topic(name, value=serde(language, Registry(url), wire))
    async with kafkaio.Producer(servers) as producer:
        await producer.send_many(topic, ours(language))
    wanted = theirs(language)
    with their_serdes(url, language, wire) as other:
        if is_apicurio and language == "protobuf":
            # What Apicurio 3.3 answers to `format=serialized` is no base64, so their
            # client cannot fetch a schema of Protobuf. It has what it has registered.
            await asyncio.to_thread(other.serialize, name, wanted[0])
        found = await asyncio.to_thread(read_theirs, servers, name, other, len(wanted))
    assert found == wanted
    assert await read(servers, topic, len(wanted)) == ours(language)


async def from_them_to_us(
    servers: str, url: str, name: str, language: Language, wire: Any
) -> None:
    wanted = ours(language)
    with their_serdes(url, language, wire) as other:
        await asyncio.to_thread(send_theirs, servers, name, other, theirs(language))
    topic = kafkaio.Topic(name, value=serde(language, Registry(url), wire))
    assert await read(servers, topic, len(wanted)) == wanted


@on_apicurio
@pytest.mark.parametrize("language", LANGUAGES)
async def test_they_read_what_we_write(
    real_kafka: Kafka, apicurio: Apicurio, topic: TopicFactory, language: Language
) -> None:
    servers = real_kafka.bootstrap_servers
    await from_us_to_them(
        servers, apicurio.url, topic(), language, "prefix", is_apicurio=True
    )


@on_apicurio
@pytest.mark.parametrize("language", LANGUAGES)
async def test_we_read_what_they_write(
    real_kafka: Kafka, apicurio: Apicurio, topic: TopicFactory, language: Language
) -> None:
    servers = real_kafka.bootstrap_servers
    await from_them_to_us(servers, apicurio.url, topic(), language, "prefix")


@pytest.mark.parametrize("wire", ["prefix", "header"])
@pytest.mark.parametrize("language", LANGUAGES)
async def test_both_ways_with_the_registry_in_process(
    real_kafka: Kafka,
    kafka_registry: SchemaRegistry,
    topic: TopicFactory,
    language: Language,
    wire: Any,
) -> None:
    servers, url = real_kafka.bootstrap_servers, kafka_registry.url
    await from_us_to_them(servers, url, topic(), language, wire)
    await from_them_to_us(servers, url, topic(), language, wire)
    assert (kafka_registry.count("GET /schemas/guids/*") > 0) is (wire == "header")


async def test_keys_headers_and_tombstones(
    real_kafka: Kafka, kafka_registry: SchemaRegistry, topic: TopicFactory
) -> None:
    """A key has a schema of its own, in a header of its own; None has none."""
    registry = Registry(kafka_registry.url)
    keys: Any = Avro('"long"', registry, wire="header")
    values: Any = Avro(Order, registry, wire="header")
    typed = kafkaio.Topic(topic(), key=keys, value=values)
    servers = real_kafka.bootstrap_servers
    (order,) = orders(1)
    async with kafkaio.Producer(servers) as producer:
        await producer.send(typed, order, key=7, headers=[("trace", b"1")])
        await producer.send(typed, None, key=7)
    assert kafka_registry.subjects() == [f"{typed.name}-key", f"{typed.name}-value"]
    async with (
        asyncio.timeout(HANGS),
        kafkaio.Consumer(servers, topics=typed, auto_offset_reset="earliest") as read,
    ):
        first, second = await anext(read), await anext(read)
    assert (first.key, first.value) == (7, order)
    names = [name for name, _ in first.headers]
    assert names[0] == "trace"
    assert sorted(names[1:]) == ["__key_schema_id", "__value_schema_id"]
    assert (second.key, second.value) == (7, None)
    assert [name for name, _ in second.headers] == ["__key_schema_id"]
