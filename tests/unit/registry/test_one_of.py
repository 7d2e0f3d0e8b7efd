"""Values of several classes on one topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry import (
    Avro,
    JsonSchema,
    OneOf,
    Protobuf,
    Schema,
    record_name,
    topic_record_name,
)
from kafkaio.serde import DeserializationContext, SerializationContext, String
from tests.unit.registry import messages as m
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import read, write


@dataclass
class Created:
    id: int


@dataclass
class Cancelled:
    id: int
    reason: str


@dataclass
class Loud(Created):
    pass


def serdes(registry: Any, **options: Any) -> list[Any]:
    options = {"subject": topic_record_name, **options}
    return [
        Avro(Created, registry, namespace="shop", **options),
        JsonSchema(Cancelled, registry, **options),
        Protobuf(m.Refund, registry, **options),
        Protobuf(m.Order, registry, **options),
    ]


VALUES = [Created(1), Cancelled(2, "r"), m.Refund(id=3), m.Order(id=4), Created(5)]


@pytest.mark.parametrize("wire", ["prefix", "header"])
async def test_each_value_has_the_serde_of_its_class(wire: Any) -> None:
    registry = MemoryRegistry()
    events = OneOf(*serdes(registry, wire=wire))
    for _ in range(2):
        for value in VALUES:
            headers: list[Any] = []
            data = await write(events, value, headers)
            assert await read(events, data, tuple(headers)) == value
    subjects = {"t-shop.Created", "t-Cancelled", "t-shop.Refund", "t-shop.Order"}
    assert subjects <= set(registry.subjects)


async def test_a_schema_that_is_cached_is_read_at_once() -> None:
    registry = MemoryRegistry()
    events = OneOf(*serdes(registry))
    context = DeserializationContext("t", (), is_key=False)
    for value in VALUES:
        data = await write(events, value)
        await read(events, data)
        assert events.deserialize(data, context) == value
    await OneOf(*serdes(registry)).prepare("t")


async def test_prepare_registers_all_of_them() -> None:
    registry = MemoryRegistry()
    events = OneOf(*serdes(registry))
    await events.prepare("t", is_key=True)
    context = SerializationContext("t", [], is_key=True)
    for value in VALUES:
        assert isinstance(events.serialize(value, context), bytes)


async def test_an_instance_of_a_subclass_is_written_as_its_class() -> None:
    events = OneOf(*serdes(MemoryRegistry()))
    assert await read(events, await write(events, Loud(1))) == Created(1)


async def test_what_is_none_of_them_is_refused() -> None:
    registry = MemoryRegistry()
    events = OneOf(*serdes(registry)[:2])
    with pytest.raises(SerializationError, match="str is none of Created, Cancelled"):
        await write(events, "text")
    others = OneOf(*serdes(registry)[2:])
    refund = await write(others, m.Refund(id=1))
    with pytest.raises(SerializationError, match="a record of the type PROTOBUF"):
        await read(events, refund)
    created = await write(events, Created(1))
    with pytest.raises(SerializationError, match="none of Refund, Order"):
        await read(others, created)
    one = OneOf(Avro(Cancelled, registry, subject=record_name))  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match="the data is Created, and none of"):
        await read(one, created)
    with pytest.raises(SerializationError, match="truncated"):
        await read(others, refund[:5])
    with pytest.raises(SerializationError, match="lead to no message"):
        await read(others, refund[:5] + b"\x02\x0a")
    with pytest.raises(SchemaError, match="not found"):
        await read(events, b"\0\0\0\0\x63x")
    registry.add("bad", Schema("{"))
    with pytest.raises(SchemaError, match=r"the schema .* not valid Avro"):
        await read(events, b"\0\0\0\0" + bytes((len(registry.by_id),)) + b"x")


def test_wrong_serdes_are_refused() -> None:
    registry: Any = MemoryRegistry()
    created = Avro(Created, registry)
    for wrong, reason in (
        ([], "needs a serde"),
        ([String()], "neither Avro"),
        ([Avro(dict, registry)], "has no class"),
        ([JsonSchema({}, registry)], "has no class"),
        ([created, Avro(Created, registry, subject=record_name)], "two serdes are for"),
        ([created, Avro(Cancelled, MemoryRegistry())], "several registries"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError, match=reason):
            OneOf(*wrong)


def test_repr_says_what_it_is() -> None:
    registry: Any = MemoryRegistry()
    one, two = Avro(Created, registry), Avro(Cancelled, registry)
    assert repr(OneOf(one, two)) == f"OneOf({one!r}, {two!r})"
