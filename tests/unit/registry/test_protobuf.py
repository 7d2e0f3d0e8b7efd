"""Protobuf by a registry."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, strategies as st

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry import Protobuf, Schema, record_name
from kafkaio.registry._proto_files import messages_of
from tests.unit.registry import messages as m
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import read, through, write

ORDER = m.Order(
    id=1,
    note="n",
    lines=[m.Line(sku="a", quantity=2)],
    total=m.Money(units=5),
    tags={"k": "v"},
)


def protobuf(registry: MemoryRegistry, kind: Any = m.Order, **options: Any) -> Any:
    return Protobuf(kind, registry, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "indexes"),
    [
        (m.Refund(id=7), b"\0"),
        (ORDER, b"\x02\x02"),
        (m.Line(sku="a"), b"\x04\x02\x02"),
        (m.Part(name="p"), b"\x06\x02\x02\x00"),
    ],
)
def test_messages_come_back_as_they_were(value: Any, indexes: bytes) -> None:
    for wire in ("prefix", "header"):
        serde = protobuf(MemoryRegistry(), type(value), wire=wire)
        assert through(serde, value) == value


@pytest.mark.parametrize(
    ("value", "indexes"),
    [
        (m.Refund(id=7), b"\0"),
        (ORDER, b"\x02\x02"),
        # The entry of the map `tags` is the first message in Order.
        (m.Line(sku="a"), b"\x04\x02\x02"),
        (m.Part(name="p"), b"\x06\x02\x02\x00"),
    ],
)
async def test_the_indexes_lead_to_the_message(value: Any, indexes: bytes) -> None:
    registry = MemoryRegistry()
    serde = protobuf(registry, type(value))
    data = await write(serde, value)
    registered = registry.subjects["t-value"][0]
    prefix = b"\0" + registered.id.to_bytes(4, "big") + indexes
    assert data == prefix + value.SerializeToString()
    header = protobuf(registry, type(value), wire="header")
    headers: list[Any] = []
    assert await write(header, value, headers) == value.SerializeToString()
    assert registered.guid is not None
    named = [("__value_schema_id", b"\1" + registered.guid.bytes + indexes)]
    assert headers == named
    for reader in (serde, header):
        for _ in range(2):
            assert await read(reader, data) == value
            payload = value.SerializeToString()
            assert await read(reader, payload, tuple(headers)) == value


async def test_imported_files_are_registered_first_and_referred_to() -> None:
    registry = MemoryRegistry()
    await write(protobuf(registry), ORDER)
    money, customer = "kafkaio_test/money.proto", "kafkaio_test/customer.proto"
    assert list(registry.subjects) == [money, customer, "t-value"]
    schema = registry.subjects["t-value"][0].schema
    assert [each.name for each in schema.references] == [money, customer]
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.text))
    assert file.name == "kafkaio_test/orders.proto"
    inner = registry.subjects[customer][0].schema
    assert [each.subject for each in inner.references] == [money]
    asked = dict(registry.asked)
    await write(protobuf(registry, register=False), ORDER)
    assert registry.asked["register"] == asked["register"]


async def test_the_subject_may_be_the_name_of_the_message() -> None:
    registry = MemoryRegistry()
    await write(protobuf(registry, m.Line, subject=record_name), m.Line())
    assert "shop.Order.Line" in registry.subjects


async def test_a_file_that_java_registered_is_read_as_text() -> None:
    registry = MemoryRegistry()
    registered = registry.add("t-value", Schema(m.ORDERS_TEXT, "PROTOBUF"))
    prefix = b"\0" + registered.id.to_bytes(4, "big")
    line = m.Line(sku="a")
    payload = line.SerializeToString()
    # Java does not count the entry of the map, and Python does.
    for indexes in (b"\x04\x02\x00", b"\x04\x02\x02"):
        assert (
            await read(protobuf(registry, m.Line), prefix + indexes + payload) == line
        )
    for options in ({"use_latest": True}, {"schema_id": registered.id}):
        data = await write(protobuf(registry, m.Line, **options), line)
        assert data == prefix + b"\x04\x02\x00" + payload


async def test_older_and_newer_fields_are_protobufs_own_matter() -> None:
    registry = MemoryRegistry()
    old = protobuf(registry, m.OldOrder)
    data = await write(old, m.OldOrder(id=5))
    assert (await read(protobuf(registry), data)).id == 5
    new = await write(protobuf(registry, subject=record_name), m.Order(id=6))
    assert (await read(old, new)).id == 6


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (b"", "message indexes are truncated"),
        (b"\x02", "message indexes are truncated"),
        (b"\x02\x0a", r"indexes \[5\] lead to no message"),
        (b"\x06\x02\x02\x02", r"indexes \[1, 1, 1\] lead to no message"),
        (b"\x02\x01", "negative"),
        (b"\x01", "a list of -1"),
        (b"\xfe\xff\xff\xff\x0f", "a list of 2147483647"),
        (b"\0", "a message Refund, and Order is expected"),
        (b"\x02\x02\xff", "is not a message Order"),
        (b"\x02\x02\x12\x7fx", "is not a message Order"),
        (b"\x02\x02\x12\x01\xff", "is not a message Order"),
    ],
)
async def test_what_is_no_order_is_one_clear_error(rest: bytes, reason: str) -> None:
    registry = MemoryRegistry()
    serde = protobuf(registry)
    prefix = (await write(serde, ORDER))[:5]
    with pytest.raises(SerializationError, match=reason):
        await read(serde, prefix + rest)


async def test_headers_whose_indexes_make_no_sense_are_refused() -> None:
    registry = MemoryRegistry()
    serde = protobuf(registry, wire="header")
    headers: list[Any] = []
    data = await write(serde, ORDER, headers)
    name, value = headers[0]
    for bad, reason in ((value[:17], "truncated"), (value + b"\0", "bytes follow")):
        with pytest.raises(SerializationError, match=reason):
            await read(serde, data, ((name, bad),))


async def test_values_that_are_no_messages_of_the_class_are_refused() -> None:
    registry = MemoryRegistry()
    with pytest.raises(SerializationError, match="must be a Order, not Refund"):
        await write(protobuf(registry), m.Refund())
    with pytest.raises(SerializationError, match="id is not set") as caught:
        await write(protobuf(registry, m.OldOrder), m.OldOrder())
    assert caught.value.field == "id"


async def test_messages_that_nest_without_a_bound_are_refused() -> None:
    registry = MemoryRegistry()
    serde = protobuf(registry, m.Node)
    prefix = (await write(serde, m.Node()))[:7]
    data = b""
    for _ in range(500):
        size = len(data)
        length = bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))
        data = b"\x0a" + length + data
    with pytest.raises(SerializationError, match="is not a message Node"):
        await read(serde, prefix + data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message A {", "no complete file"),
        ("}", "braces do not match"),
        ("message A {" * 200, "braces do not match"),
        ("hello {}", "no complete file"),
        ("aGVsbG8=", "not valid Protobuf"),
        ("", "no complete file"),
    ],
)
async def test_a_schema_that_does_not_parse_is_one_clear_error(
    text: str, reason: str
) -> None:
    registry = MemoryRegistry()
    registry.add("t-value", Schema(text, "PROTOBUF"))
    with pytest.raises(SchemaError, match=reason):
        await read(protobuf(registry), b"\0\0\0\0\1\0")


async def test_a_schema_without_the_message_is_refused() -> None:
    registry = MemoryRegistry()
    text = 'syntax = "proto3"; message Other {}'
    registry.add("t-value", Schema(text, "PROTOBUF"))
    with pytest.raises(SchemaError, match="has no message Order"):
        await write(protobuf(registry, use_latest=True), ORDER)


def test_what_is_no_generated_class_is_refused() -> None:
    for kind in (dict, ORDER, "Order", None):
        with pytest.raises(ConfigurationError, match="that protoc generated"):
            protobuf(MemoryRegistry(), kind)


def test_text_and_descriptor_have_the_same_messages() -> None:
    text = messages_of(m.ORDERS_TEXT)
    descriptor = messages_of(Protobuf(m.Order, MemoryRegistry()).schema.text)  # type: ignore[arg-type]
    assert text.package == descriptor.package == "shop"
    assert [each.name for each in text.messages] == ["Refund", "Order"]
    for indexes in ([0], [1], [1, 0], [1, 1], [1, 1, 0]):
        assert text.names(indexes) == descriptor.names(indexes)
    assert text.names([1, 0]) == {"Order.TagsEntry", "Order.Line"}
    assert text.names([2]) == text.names([-1]) == set()


def test_groups_and_oneofs_have_messages() -> None:
    tree = messages_of(
        "message A { optional group G = 1 { message H {} } "
        "oneof x { group I = 2 { } } message J { } }"
    )
    assert [each.name for each in tree.messages[0].messages] == ["G", "I", "J"]
    assert tree.indexes("A.G.H") == (0, 0, 0)
    assert tree.indexes("A.J") == (0, 2)
    assert tree.indexes("B") is None


@given(st.text(alphabet='message AB{};"/*\n'))
def test_any_text_has_messages_or_one_error(text: str) -> None:
    with suppress(SchemaError):
        messages_of(text)


def test_repr_says_what_it_is() -> None:
    assert repr(protobuf(MemoryRegistry())) == (
        "Protobuf(shop.Order, subject=topic_name, wire='prefix')"
    )
