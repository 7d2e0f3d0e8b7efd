"""Avro by a registry: which schema, under which id, resolved to which."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry import (
    Avro,
    Schema,
    SchemaReference,
    record_name,
    topic_name,
    topic_record_name,
)
from kafkaio.registry._serde import MOST_COMPILED, MOST_TEXT, MOST_TOPICS
from kafkaio.serde import DeserializationContext, SerializationContext
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import read, settle, through, write

ORDER: dict[str, object] = {
    "type": "record",
    "name": "acme.Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}
VALUE: dict[str, object] = {"id": 1, "note": "n"}


@dataclass
class Order:
    id: int
    note: str


def avro(registry: MemoryRegistry, schema: Any = ORDER, **options: Any) -> Avro[Any]:
    return Avro(schema, registry, **options)


def test_dicts_by_a_schema_as_text_or_dict() -> None:
    for schema in (ORDER, json.dumps(ORDER)):
        assert through(avro(MemoryRegistry(), schema), VALUE) == VALUE


def test_any_type_can_be_a_schema() -> None:
    for schema, value in (
        ("string", "a"),
        ('"long"', 5),
        ({"type": "array", "items": "long"}, [1, 2]),
        (["null", "string"], "a"),
        ({"type": "map", "values": ORDER}, {"a": VALUE}),
        ([ORDER, {**ORDER, "name": "acme.Other"}], VALUE),
    ):
        assert through(avro(MemoryRegistry(), schema), value) == value


async def test_the_first_record_asks_and_the_others_do_not() -> None:
    registry = MemoryRegistry()
    serde = avro(registry)
    context = SerializationContext("t", [], is_key=False)
    first = serde.serialize(VALUE, context)
    data = await settle(first)
    assert not isinstance(first, bytes)
    assert data == b"\0\0\0\0\1\x02\x02n"
    assert serde.serialize(VALUE, context) == data
    assert registry.asked == {"register": 1}
    other = avro(registry)
    # The registry knows the schema by now.
    assert other.serialize(VALUE, context) == data
    reading = DeserializationContext("t", (), is_key=False)
    assert await settle(other.deserialize(data, reading)) == VALUE
    assert other.deserialize(data, reading) == VALUE
    assert avro(registry).deserialize(data, reading) == VALUE
    assert registry.asked == {"register": 1, "schema": 1}


async def test_prepare_asks_before_the_first_record() -> None:
    registry = MemoryRegistry()
    serde = avro(registry)
    await serde.prepare("t")
    await serde.prepare("t", is_key=True)
    assert set(registry.subjects) == {"t-value", "t-key"}
    for is_key in (False, True):
        context = SerializationContext("t", [], is_key)
        assert isinstance(serde.serialize(VALUE, context), bytes)


@pytest.mark.parametrize(
    ("strategy", "value_subject", "key_subject"),
    [
        (topic_name, "t-value", "t-key"),
        (record_name, "acme.Order", "acme.Order"),
        (topic_record_name, "t-acme.Order", "t-acme.Order"),
        (lambda context, record: f"{context.topic}/{record}", "t/acme.Order", ""),
    ],
)
async def test_strategies_name_the_subject(
    strategy: Any, value_subject: str, key_subject: str
) -> None:
    registry = MemoryRegistry()
    serde = avro(registry, subject=strategy)
    await write(serde, VALUE)
    await write(serde, VALUE, is_key=True)
    assert set(registry.subjects) == {value_subject, key_subject} - {""}


async def test_a_strategy_of_the_user_may_look_at_each_record() -> None:
    registry = MemoryRegistry()

    def by_tenant(context: SerializationContext, record: str) -> str:
        tenant = dict(context.headers)["tenant"]
        assert tenant is not None
        return f"{tenant.decode()}.{record}"

    serde = avro(registry, subject=by_tenant)
    for tenant in (b"a", b"b", b"a"):
        await write(serde, VALUE, [("tenant", tenant)])
    assert set(registry.subjects) == {"a.acme.Order", "b.acme.Order"}
    assert registry.asked == {"register": 2}


async def test_a_schema_without_a_name_has_no_record_name() -> None:
    serde = avro(MemoryRegistry(), "string", subject=record_name)
    with pytest.raises(ConfigurationError, match="no name"):
        await write(serde, "a")


async def test_look_up_only() -> None:
    registry = MemoryRegistry()
    serde = avro(registry, register=False)
    with pytest.raises(SchemaError, match="schema not found"):
        await write(serde, VALUE)
    registered = registry.add("t-value", serde.schema)
    assert (await write(serde, VALUE))[:5] == b"\0\0\0\0" + bytes((registered.id,))
    assert set(registry.asked) == {"lookup"}


async def test_the_latest_schema_of_the_subject() -> None:
    registry = MemoryRegistry()
    longer = {
        **ORDER,
        "fields": [
            *ORDER["fields"],  # type: ignore[misc]
            {"name": "new", "type": "string", "default": "d"},
        ],
    }
    registry.add("t-value", Schema(json.dumps(ORDER)))
    latest = registry.add("t-value", Schema(json.dumps(longer)))
    for schema in (ORDER, Order):
        serde = avro(registry, schema, use_latest=True)
        value = VALUE if schema is ORDER else Order(1, "n")
        data = await write(serde, value)
        assert data == b"\0\0\0\0" + bytes((latest.id,)) + b"\x02\x02n\x02d"
    assert set(registry.asked) == {"latest"}


async def test_the_schema_of_an_id() -> None:
    registry = MemoryRegistry()
    registry.add("other", Schema(json.dumps(ORDER)))
    serde = avro(registry, Order, schema_id=1)
    assert (await write(serde, Order(1, "n")))[:5] == b"\0\0\0\0\1"
    assert set(registry.asked) == {"schema"}


async def test_the_header_of_a_schema_of_an_id_is_looked_up() -> None:
    registry = MemoryRegistry()
    registered = registry.add("t-value", Schema(json.dumps(ORDER)))
    serde = avro(registry, schema_id=1, wire="header")
    headers: list[Any] = []
    await write(serde, VALUE, headers)
    assert registered.guid is not None
    assert headers == [("__value_schema_id", b"\1" + registered.guid.bytes)]


async def test_records_of_a_union_are_named_as_the_schema_has_it() -> None:
    registry = MemoryRegistry()
    derived = json.loads(Avro(Event, MemoryRegistry()).schema.text)  # type: ignore[arg-type]
    derived["namespace"] = "com.acme"
    registry.add("t-value", Schema(json.dumps(derived)))
    serde = avro(registry, Event, use_latest=True)
    for value in (Event(Paid(3)), Event(Order(1, "n"))):
        assert await read(serde, await write(serde, value)) == value


@dataclass
class Paid:
    id: int


@dataclass
class Event:
    what: Order | Paid


async def test_the_header_form_leaves_the_value_untouched() -> None:
    registry = MemoryRegistry()
    serde = avro(registry, wire="header")
    headers: list[Any] = [("trace", b"1"), ("__value_schema_id", b"stale")]
    data = await write(serde, VALUE, headers)
    assert data == b"\x02\x02n"
    guid = registry.subjects["t-value"][0].guid
    assert guid is not None
    expected = [("trace", b"1"), ("__value_schema_id", b"\1" + guid.bytes)]
    assert headers == expected
    # Again, with the schema cached.
    again: list[Any] = []
    assert await write(serde, VALUE, again) == data
    assert again == expected[1:]
    # Who writes prefixes reads both.
    other = avro(registry)
    assert await read(other, data, tuple(headers)) == VALUE
    assert await read(other, data, tuple(headers)) == VALUE
    assert registry.asked["schema_by_guid"] == 1
    assert await read(serde, await write(other, VALUE), ()) == VALUE


async def test_a_key_has_a_header_of_its_own() -> None:
    serde = avro(MemoryRegistry(), wire="header")
    headers: list[Any] = [("__value_schema_id", b"kept")]
    data = await write(serde, VALUE, headers, is_key=True)
    assert [name for name, _ in headers] == ["__value_schema_id", "__key_schema_id"]
    assert await read(serde, data, tuple(headers), is_key=True) == VALUE


async def test_a_prefix_removes_headers_that_name_another_schema() -> None:
    serde = avro(MemoryRegistry())
    for _ in range(2):
        headers: list[Any] = [
            ("__value_schema_id", b"\1" + bytes(16)),
            ("apicurio.value.contentId", bytes(8)),
            ("__key_schema_id", b"kept"),
        ]
        data = await write(serde, VALUE, headers)
        assert headers == [("__key_schema_id", b"kept")]
        assert await read(serde, data, tuple(headers)) == VALUE


async def test_a_registry_without_guids_has_no_header_form() -> None:
    serde = avro(MemoryRegistry(has_guids=False), wire="header")
    with pytest.raises(ConfigurationError, match="use wire='prefix'"):
        await write(serde, VALUE)


async def test_apicurio_names_schemas_in_a_header_by_an_int64() -> None:
    registry = MemoryRegistry()
    serde = avro(registry)
    data = await write(serde, VALUE)
    headers = (("apicurio.value.contentId", b"\0\0\0\0\0\0\0\1"),)
    assert await read(serde, data[5:], headers) == VALUE


async def test_schemas_of_other_subjects_are_referred_to_by_name() -> None:
    registry = MemoryRegistry()
    line = {
        "type": "record",
        "name": "acme.Line",
        "fields": [{"name": "sku", "type": "string"}],
    }
    deeper = {
        "type": "record",
        "name": "acme.Lines",
        "fields": [{"name": "all", "type": {"type": "array", "items": "acme.Line"}}],
    }
    registry.add("line", Schema(json.dumps(line)))
    to_line = SchemaReference("acme.Line", "line", 1)
    registry.add("lines", Schema(json.dumps(deeper), references=(to_line,)))
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "acme",
        "fields": [{"name": "lines", "type": "Lines"}],
    }
    references = [SchemaReference("acme.Lines", "lines", 1)]
    value = {"lines": {"all": [{"sku": "a"}, {"sku": "b"}]}}
    for schema, written in (
        (order, value),
        (["null", "acme.Lines"], value["lines"]),
        ('"acme.Lines"', value["lines"]),
    ):
        serde = avro(registry, schema, references=references)
        data = await write(serde, written)
        assert await read(serde, data) == written
        assert (
            serde.serialize(written, SerializationContext("t", [], is_key=False))
            == data
        )


async def test_dicts_of_any_schema() -> None:
    registry = MemoryRegistry()
    writer = avro(registry)
    generic: Avro[Any] = Avro(dict, registry)  # type: ignore[arg-type]
    data = await write(writer, VALUE)
    assert await read(generic, data) == VALUE
    with pytest.raises(ConfigurationError, match="use_latest=True or schema_id="):
        await write(generic, VALUE)
    for options in ({"use_latest": True}, {"schema_id": 1}):
        assert await write(avro(registry, dict, **options), VALUE) == data
    assert generic.schema is None
    assert repr(generic).startswith("Avro(dict, ")
    assert generic.to_arrow([data]) is None


# -- evolution -------------------------------------------------------------------------


@dataclass
class Wide:
    id: float
    extra: str = "d"
    more: list[int] | None = None


async def test_a_reader_resolves_older_and_newer_writers() -> None:
    registry = MemoryRegistry()
    wide = avro(registry, {**json.loads(avro(registry, Wide).schema.text), "name": "R"})
    narrow = avro(
        registry,
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "gone", "type": {"type": "array", "items": "string"}},
                {"name": "id", "type": "int"},
            ],
        },
        reader_schema=json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "id", "type": "double"}],
            }
        ),
    )
    schema = json.loads(avro(registry, Wide).schema.text)
    schema["name"] = "R"
    reader = avro(registry, Wide, reader_schema=schema)
    old = await write(narrow, {"gone": ["a", "b"], "id": 3})
    new = await write(wide, {"id": 1.5, "extra": "e", "more": [1]})
    assert await read(reader, old) == Wide(3.0, "d", None)
    assert await read(reader, new) == Wide(1.5, "e", [1])
    assert await read(avro(registry, dict), old) == {"gone": ["a", "b"], "id": 3}
    assert await read(narrow, old) == {"id": 3.0}
    assert await read(narrow, new) == {"id": 1.5}


async def test_dicts_are_resolved_to_their_own_schema() -> None:
    registry = MemoryRegistry()
    registry.add("line", Schema('{"type":"enum","name":"E","symbols":["A"]}'))
    references = [SchemaReference("E", "line", 1)]
    fields = [{"name": "id", "type": "long"}]
    more = [*fields, {"name": "kind", "type": "E", "default": "A"}]
    record = {"type": "record", "name": "R"}
    old = avro(registry, {**record, "fields": fields})
    new = avro(registry, {**record, "fields": more}, references=references)
    data = await write(old, {"id": 1})
    for _ in range(2):
        assert await read(new, data) == {"id": 1, "kind": "A"}
    assert await read(old, await write(new, {"id": 2, "kind": "A"})) == {"id": 2}
    array = new.to_arrow([data])
    assert array is not None
    assert array.to_pylist() == [{"id": 1, "kind": "A"}]


@dataclass
class Zoned:
    id: UUID
    at: datetime
    ids: list[UUID]
    maybe: UUID | None
    by: dict[str, date]
    count: int
    next: Zoned | None = None


async def test_a_writer_without_logical_types_is_read_by_the_readers() -> None:
    registry = MemoryRegistry()
    fields = [
        {"name": "id", "type": "string"},
        {"name": "at", "type": "long"},
        {"name": "ids", "type": {"type": "array", "items": "string"}},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "by", "type": {"type": "map", "values": "int"}},
        {"name": "count", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "next", "type": ["null", "Zoned"], "default": None},
    ]
    plain = avro(registry, {"type": "record", "name": "a.Zoned", "fields": fields})
    text = str(UUID(int=1))
    value = {"id": text, "at": 7, "ids": [text], "maybe": text, "by": {"a": 1}}
    value |= {"count": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), "next": None}
    data = await write(plain, {**value, "next": {**value, "maybe": None}})
    at = datetime(1970, 1, 1, microsecond=7, tzinfo=UTC)
    inner = Zoned(UUID(int=1), at, [UUID(int=1)], None, {"a": date(1970, 1, 2)}, 5000)
    expected = replace(inner, maybe=UUID(int=1), next=inner)
    assert await read(avro(registry, Zoned), data) == expected
    flat = avro(registry, {"type": "record", "name": "a.Flat", "fields": fields[:-1]})
    data = await write(flat, {**value, "count": datetime(1970, 1, 1, tzinfo=UTC)})
    await read(flat, data)
    for extra in ([], [{"name": "new", "type": "int", "default": 1}]):
        schema = json.loads(avro(registry, Zoned).schema.text)  # type: ignore[union-attr]
        schema |= {"name": "Flat", "fields": [*schema["fields"][:-1], *extra]}
        array = avro(registry, schema).to_arrow([data])
        assert array is not None
        found = array[0].as_py()
        assert (found["id"], found["at"], found["count"]) == (text, at, 0)
        assert found["by"] == [("a", date(1970, 1, 2))]
        assert found.get("new", 1) == 1


async def test_records_of_a_union_adopt_what_their_own_name_has() -> None:
    registry = MemoryRegistry()
    uuid = {"type": "string", "logicalType": "uuid"}

    def union(one: Any, two: Any) -> Any:
        records = [
            {"type": "record", "name": name, "fields": [{"name": "id", "type": kind}]}
            for name, kind in (("A", one), ("B", two))
        ]
        return {"type": "array", "items": records}

    text = str(UUID(int=1))
    plain = avro(registry, union("string", "string"))
    data = await write(plain, [("A", {"id": text}), ("B", {"id": text})])
    reader = avro(registry, union("string", uuid))
    assert await read(reader, data) == [{"id": text}, {"id": UUID(int=1)}]


async def test_where_both_have_a_logical_type_the_writer_says_what_bytes_mean() -> None:
    registry = MemoryRegistry()
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    record = {"type": "record", "name": "At"}
    writer = avro(registry, {**record, "fields": [{"name": "at", "type": millis}]})
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    reader = avro(registry, {**record, "fields": [{"name": "at", "type": micros}]})
    value = {"at": datetime(2024, 1, 1, tzinfo=UTC)}
    data = await write(writer, value)
    assert await read(reader, data) == value
    array = reader.to_arrow([data])
    assert array is not None
    assert array.to_pylist() == [value]


async def test_a_record_of_another_namespace_is_the_same_record() -> None:
    registry = MemoryRegistry()
    data = await write(avro(registry), VALUE)
    assert await read(avro(registry, Order), data) == Order(1, "n")


@pytest.mark.parametrize(
    "schema",
    [
        {**ORDER, "name": "Refund"},
        {**ORDER, "fields": [{"name": "id", "type": "long"}]},
        {**ORDER, "fields": [{"name": "id", "type": "string"}]},
    ],
)
async def test_what_cannot_be_resolved_is_one_clear_error(schema: Any) -> None:
    registry = MemoryRegistry()
    value = {"id": 1} if schema["fields"][0]["type"] == "long" else {"id": "a"}
    data = await write(avro(registry, schema), VALUE | value)
    with pytest.raises(SerializationError, match="by the reader's schema"):
        await read(avro(registry, Order), data)


# -- errors ----------------------------------------------------------------------------


async def test_an_id_that_is_not_there_is_the_registrys_error() -> None:
    with pytest.raises(SchemaError, match="not found"):
        await read(avro(MemoryRegistry()), b"\0\0\0\0\7x")
    headers = (("__value_schema_id", b"\1" + UUID(int=5).bytes),)
    with pytest.raises(SchemaError, match="not found"):
        await read(avro(MemoryRegistry()), b"x", headers)


async def test_a_schema_of_another_language_is_refused() -> None:
    registry = MemoryRegistry()
    registry.add("t-value", Schema("{}", "JSON"))
    with pytest.raises(SchemaError, match="the schema 1 is a schema of the type JSON"):
        await read(avro(registry), b"\0\0\0\0\1x")
    for options in ({"use_latest": True}, {"schema_id": 1}):
        with pytest.raises(SchemaError, match="of the type JSON, not AVRO"):
            await write(avro(registry, **options), VALUE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON|nested too deeply"),
        ('{"type": "record"}', "not valid Avro"),
        ('{"type": "record", "name": "N", "fields": 5}', "not valid Avro"),
        ('{"type": "nothing"}', "not valid Avro"),
        ("null", "not valid Avro"),
        ("7", "not valid Avro"),
        (
            '{"type":"record","name":"N","fields":[{"name":"a","type":"int"},'
            '{"name":"a","type":"int"}]}',
            "two fields 'a'",
        ),
        (json.dumps({**ORDER, "doc": "x" * MOST_TEXT}), "too large"),
    ],
)
async def test_a_schema_that_does_not_parse_is_one_clear_error(
    text: str, reason: str
) -> None:
    registry = MemoryRegistry()
    registry.add("t-value", Schema(text))
    for _ in range(2):
        with pytest.raises(SchemaError, match=reason) as caught:
            await read(avro(registry), b"\0\0\0\0\1x")
        assert "the schema 1" in str(caught.value)
    if text[0] in '{["':
        with pytest.raises(SchemaError, match=reason):
            avro(registry, text)


def test_a_schema_that_is_not_json_is_refused() -> None:
    with pytest.raises(SchemaError, match="not JSON"):
        avro(MemoryRegistry(), {"type": {1, 2}})
    with pytest.raises(SchemaError):
        avro(MemoryRegistry(), "no type")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"wire": "footer"}, "wire must be"),
        ({"subject": "topic_name"}, "subject must be a function"),
        ({"schema_id": 0}, "schema_id"),
        ({"schema_id": "1"}, "schema_id"),
        ({"schema_id": True}, "schema_id"),
        ({"schema_id": 1, "use_latest": True}, "exclude each other"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        avro(MemoryRegistry(), **options)


async def test_bytes_after_the_value_are_an_error() -> None:
    serde = avro(MemoryRegistry())
    data = await write(serde, VALUE)
    with pytest.raises(SerializationError, match="2 bytes follow"):
        await read(serde, data + b"xx")
    with pytest.raises(SerializationError, match="truncated"):
        await read(serde, data[:-1])


async def test_a_header_with_message_indexes_is_not_avro() -> None:
    registry = MemoryRegistry()
    serde = avro(registry, wire="header")
    headers: list[Any] = []
    data = await write(serde, VALUE, headers)
    headers[0] = (headers[0][0], headers[0][1] + b"\0")
    with pytest.raises(SchemaError, match="names a message"):
        await read(serde, data, tuple(headers))


async def test_compiled_schemas_are_bounded() -> None:
    registry = MemoryRegistry()
    serde = avro(registry, "long")
    for number in range(MOST_COMPILED + 10):
        registry.by_id[number + 1] = Schema('"long"')
        data = b"\0" + (number + 1).to_bytes(4, "big") + b"\2"
        assert await read(serde, data) == 1
    assert len(serde._core._readers) <= MOST_COMPILED


async def test_topics_of_one_schema_share_what_is_compiled_and_are_bounded() -> None:
    registry = MemoryRegistry()
    serde = avro(registry, "long")
    first = await write(serde, 1, topic="t0")
    for number in range(MOST_TOPICS + 10):
        assert await write(serde, 1, topic=f"t{number}") == first
    core = serde._core
    assert len(core._writers) == 1
    assert len(core._of_values) <= MOST_TOPICS
    assert len(core._by_subject) <= MOST_TOPICS


async def test_many_first_records_at_once_compile_once() -> None:
    registry = MemoryRegistry()
    registry.gate = asyncio.Event()
    serde = avro(registry)
    first = [asyncio.ensure_future(write(serde, VALUE)) for _ in range(100)]
    await asyncio.sleep(0)
    registry.gate.set()
    data = {await each for each in first}
    assert len(data) == 1
    assert len(serde._core._by_subject) == 1


def test_repr_says_what_it_is_and_no_secret() -> None:
    assert repr(avro(MemoryRegistry(), Order)) == (
        "Avro(Order, subject=topic_name, wire='prefix')"
    )
    assert "acme.Order" in repr(avro(MemoryRegistry()))


def test_errors_can_be_pickled() -> None:
    with pytest.raises(SerializationError) as caught:
        through(avro(MemoryRegistry()), {"id": "x", "note": ""})
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.field) == (str(caught.value), "id")
