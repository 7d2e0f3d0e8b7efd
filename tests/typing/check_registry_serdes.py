"""What type checkers tell users of schemas, for `mypy tests/typing`; never run."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypedDict, assert_type

import kafkaio
from kafkaio.registry import (
    Avro,
    AvroAs,
    JsonSchema,
    OneOf,
    Registry,
    decimal,
    record_name,
    topic_record_name,
)
from kafkaio.serde import DeserializationContext, Serde, SerializationContext


@dataclass
class Order:
    id: int
    amount: Annotated[Decimal, AvroAs(decimal(precision=12, scale=2))]


class Line(TypedDict):
    sku: str


def by_tenant(context: SerializationContext, record: str) -> str:
    return f"{context.topic}.{record}"


def make(registry: Registry) -> None:
    avro = Avro(Order, registry)
    assert_type(avro, Avro[Order])
    assert_type(Avro(Line, registry), Avro[Line])
    assert_type(Avro('{"type": "string"}', registry), Avro[Mapping[str, object]])
    assert_type(Avro({"type": "string"}, registry), Avro[Mapping[str, object]])
    assert_type(JsonSchema(Order, registry), JsonSchema[Order])
    assert_type(
        JsonSchema({"type": "object"}, registry), JsonSchema[Mapping[str, object]]
    )
    serde: Serde[Order] = avro
    json: Serde[Order] = JsonSchema(Order, registry, subject=record_name)
    Avro(Order, registry, subject=topic_record_name, wire="header", register=False)
    Avro(Order, registry, subject=by_tenant, use_latest=True)
    Avro(Order, registry, wire="footer")  # type: ignore[call-overload]
    assert serde is not json


async def use(registry: Registry) -> None:
    orders = kafkaio.Topic("orders", value=Avro(Order, registry))
    assert_type(orders, kafkaio.Topic[bytes | None, Order])
    both = kafkaio.Topic(
        "orders", key=JsonSchema(Line, registry), value=Avro(Order, registry)
    )
    assert_type(both, kafkaio.Topic[Line, Order])
    dicts = kafkaio.Topic("orders", value=Avro("{}", registry))
    assert_type(dicts, kafkaio.Topic[bytes | None, Mapping[str, object]])
    events = OneOf(Avro(Order, registry), JsonSchema(Line, registry))
    assert_type(events, OneOf[Order | Line])
    assert_type(
        kafkaio.Topic("events", value=events),
        kafkaio.Topic[bytes | None, Order | Line],
    )
    serde = Avro(Order, registry)
    await serde.prepare("orders")
    await serde.prepare("orders", is_key=True)
    writing = SerializationContext("orders", [], is_key=False)
    order = Order(1, Decimal("1.50"))
    serde.serialize(order, writing)
    serde.serialize("order", writing)  # type: ignore[arg-type]
    found = serde.deserialize(b"", DeserializationContext("orders", (), is_key=False))
    assert_type(found, Order | Awaitable[Order])


async def produce(registry: Registry) -> None:
    orders = kafkaio.Topic("orders", value=Avro(Order, registry))
    async with kafkaio.Producer("localhost:9092") as producer:
        await producer.send(orders, Order(1, Decimal(2)), key=b"k")
        await producer.send(orders, "order")  # type: ignore[misc]
    async with kafkaio.Consumer("localhost:9092", topics=orders) as consumer:
        async for record in consumer:
            assert_type(record.value, Order)
    async with kafkaio.Consumer(
        "localhost:9092", topics="orders", value_deserializer=Avro(Order, registry)
    ) as typed:
        async for one in typed:
            assert_type(one.value, Order)
