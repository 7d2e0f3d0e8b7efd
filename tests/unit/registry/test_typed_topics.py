"""Topics whose records have schemas, from producer to consumer, over a registry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import kafkaio
from kafkaio.errors import DeserializationError, SchemaError, SerializationError
from kafkaio.registry import Avro, JsonSchema, Protobuf, Registry
from kafkaio.testing import Broker, SchemaRegistry
from tests.unit.registry import messages as m


@dataclass
class Order:
    id: int
    note: str = ""


@dataclass
class Key:
    customer: int


async def read_all(servers: str, topic: Any, count: int, **options: Any) -> list[Any]:
    async with kafkaio.Consumer(
        servers, topics=topic, auto_offset_reset="earliest", **options
    ) as consumer:
        found = []
        async for record in consumer:
            found.append(record)
            if len(found) == count:
                return found
    raise AssertionError


@pytest.mark.parametrize("wire", ["prefix", "header"])
async def test_records_of_all_three_languages(wire: Any) -> None:
    async with Broker(topics={"t": 1}) as broker, SchemaRegistry() as served:
        registry = Registry(served.url)
        topics = {
            "avro": Avro(Order, registry, wire=wire),
            "json": JsonSchema(Order, registry, wire=wire),
            "protobuf": Protobuf(m.Order, registry, wire=wire),
        }
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            for name, serde in topics.items():
                broker.create_topic(name)
                topic: Any = kafkaio.Topic(name, key=Avro(Key, registry), value=serde)
                kind: Any = m.Order if name == "protobuf" else Order
                for number in range(3):
                    value = kind(id=number, note="n")
                    await producer.send(topic, value, key=Key(number))
                await producer.send(topic, None, key=Key(3))
                records = await read_all(servers, topic, 4)
                assert [record.key for record in records] == [Key(n) for n in range(4)]
                assert [record.value for record in records] == [
                    *(kind(id=number, note="n") for number in range(3)),
                    None,
                ]


async def test_values_that_do_not_fit_are_not_sent() -> None:
    async with Broker(topics={"t": 1}) as broker, SchemaRegistry() as served:
        topic = kafkaio.Topic("t", value=Avro(Order, Registry(served.url)))
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            for _ in range(2):  # before and after the schema is known
                with pytest.raises(SerializationError) as caught:
                    await producer.send(topic, Order("x"))  # type: ignore[arg-type]
                assert caught.value.field == "id"
                await producer.send(topic, Order(1))
        assert len(await read_all(servers, topic, 2)) == 2


async def test_an_incompatible_schema_is_refused_before_anything_is_sent() -> None:
    async with Broker(topics={"t": 1}) as broker, SchemaRegistry() as served:
        registry = Registry(served.url)
        first = kafkaio.Topic("t", value=Avro(Order, registry))
        record = {"type": "record", "name": "Order"}
        fields = [{"name": "id", "type": "string"}]
        second = kafkaio.Topic("t", value=Avro({**record, "fields": fields}, registry))
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send(first, Order(1))
            with pytest.raises(SchemaError) as caught:
                await producer.send(second, {"id": "a"})
            assert caught.value.subject == "t-value"
            assert caught.value.status == 409
            await producer.send(first, Order(2))
        found = await read_all(servers, first, 2)
        assert [record.value.id for record in found] == [1, 2]


async def test_a_record_that_names_no_schema_does_not_hide_the_next() -> None:
    async with Broker(topics={"t": 1}) as broker, SchemaRegistry() as served:
        topic = kafkaio.Topic("t", value=Avro(Order, Registry(served.url)))
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send("t", b"\0\0\0\0\x63poison")
            await producer.send("t", b"poison")
            await producer.send(topic, Order(1))
        async with kafkaio.Consumer(
            servers, topics=topic, auto_offset_reset="earliest"
        ) as consumer:
            causes = []
            for _ in range(2):
                with pytest.raises(DeserializationError) as caught:
                    await anext(consumer)
                causes.append(type(caught.value.__cause__))
                error = caught.value
                consumer.seek(error.topic_partition, error.offset + 1)
            assert causes == [SchemaError, SerializationError]
            assert (await anext(consumer)).value == Order(1)


async def test_a_thousand_first_records_ask_once() -> None:
    async with Broker(topics={"t": 4}) as broker, SchemaRegistry() as served:
        registry = Registry(served.url)
        topic = kafkaio.Topic("t", value=Avro(Order, registry))
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer, asyncio.TaskGroup() as tasks:
            for number in range(1000):
                tasks.create_task(producer.send(topic, Order(number)))
        found = await read_all(servers, topic, 1000)
        assert {record.value.id for record in found} == set(range(1000))
        assert registry.statistics().requests <= 3
