"""JSON Schema by a registry."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from time import monotonic
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.errors import ConfigurationError, SchemaError, SerializationError
from kafkaio.registry import JsonSchema, Schema, SchemaReference, record_name
from kafkaio.registry._serde import MOST_TEXT
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import drive, read, through, write

ORDER: dict[str, object] = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["id"],
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"sku": {"type": "string", "pattern": "^[a-z]+$"}},
            "required": ["sku"],
            "additionalProperties": False,
        }
    },
}
VALUE: dict[str, object] = {"id": 1, "lines": [{"sku": "a"}]}


def serde_of(registry: MemoryRegistry, schema: Any = ORDER, **options: Any) -> Any:
    return JsonSchema(schema, registry, **options)


class Status(Enum):
    NEW = "new"
    OLD = "old"


@dataclass
class Line:
    sku: str
    quantity: int = 1


@dataclass
class Order:
    id: UUID
    lines: list[Line]
    amount: float
    price: Decimal = Decimal("1.5")
    status: Status = Status.NEW
    note: str | None = None
    created: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    day: date = date(2020, 1, 1)
    at: time = time(1, 2)
    raw: bytes = b"a"
    kind: Literal["a", 1] = "a"
    tags: set[str] = field(default_factory=set)
    pair: tuple[int, str] = (1, "a")
    by: dict[str, Line] = field(default_factory=dict)
    parent: Order | None = None
    anything: Any = None


class TOrder(TypedDict):
    id: int
    lines: list[Line]
    note: NotRequired[str]


class PLine(pydantic.BaseModel):
    sku: str


class POrder(pydantic.BaseModel):
    id: int
    lines: list[PLine]
    note: str | None = pydantic.Field(None, alias="theNote")
    parent: POrder | None = None


class MLine(msgspec.Struct):
    sku: str


class MOrder(msgspec.Struct, rename="camel"):
    order_id: int
    lines: list[MLine]


@dataclass
class Mixed:
    model: PLine
    struct: MLine


FULL = Order(
    UUID(int=1),
    [Line("a"), Line("b", 2)],
    1.5,
    tags={"x"},
    by={"k": Line("c")},
    parent=Order(UUID(int=2), [], 2.5),
    anything={"a": [1, None]},
)


@pytest.mark.parametrize(
    "value",
    [
        FULL,
        {"id": 1, "lines": [Line("a")]},
        {"id": 1, "lines": [], "note": "n"},
        POrder(
            id=1, lines=[PLine(sku="a")], theNote="n", parent=POrder(id=2, lines=[])
        ),
        MOrder(1, [MLine("a")]),
        Mixed(PLine(sku="a"), MLine("b")),
    ],
)
def test_instances_come_back_as_they_were(value: Any) -> None:
    kind = TOrder if type(value) is dict else type(value)
    serde = serde_of(MemoryRegistry(), kind)
    jsonschema.Draft202012Validator.check_schema(json.loads(serde.schema.text))
    for wire in ("prefix", "header"):
        assert through(serde_of(MemoryRegistry(), kind, wire=wire), value) == value


def test_dicts_by_a_schema_as_text_or_dict() -> None:
    for schema in (ORDER, json.dumps(ORDER)):
        assert through(serde_of(MemoryRegistry(), schema), VALUE) == VALUE


async def test_the_title_is_the_name_of_the_record() -> None:
    registry = MemoryRegistry()
    await write(serde_of(registry, subject=record_name), VALUE)
    await write(serde_of(registry, POrder, subject=record_name), POrder(id=1, lines=[]))
    assert set(registry.subjects) == {"Order", "POrder"}
    untitled = serde_of(registry, {"type": "object"}, subject=record_name)
    with pytest.raises(ConfigurationError, match="no name"):
        await write(untitled, {})


async def test_the_bytes_are_json_behind_the_prefix() -> None:
    data = await write(serde_of(MemoryRegistry()), VALUE)
    assert data == b'\0\0\0\0\1{"id":1,"lines":[{"sku":"a"}]}'


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ({"id": "x"}, "id", "must be of the type integer"),
        ({}, "id", "is missing"),
        ({"id": 0}, "id", "'minimum' of the schema: 1"),
        ({"id": 1, "lines": [{"sku": "a"}, {"sku": "1"}]}, "lines[1].sku", "pattern"),
        ({"id": 1, "lines": [{}]}, "lines[0].sku", "is missing"),
        ({"id": 1, "lines": [{"sku": "a", "x": 1}]}, "lines[0]", "additional"),
        ([], "", "the value must be of the type object"),
    ],
)
async def test_a_value_that_does_not_fit_names_the_field(
    value: Any, field: str, reason: str
) -> None:
    registry = MemoryRegistry()
    serde = serde_of(registry)
    with pytest.raises(SerializationError, match=reason) as caught:
        await write(serde, value)
    assert caught.value.field == field
    # Without validation it is written, and the reader finds it.
    data = await write(serde_of(registry, validate=False), value)
    with pytest.raises(SerializationError) as caught:
        await read(serde, data)
    assert caught.value.field == field
    assert await read(serde_of(registry, validate=False), data) == value


def test_an_error_does_not_show_the_value() -> None:
    with pytest.raises(SerializationError) as caught:
        through(serde_of(MemoryRegistry()), {"id": "4111 1111 1111 1111"})
    assert "4111" not in str(caught.value)


async def test_an_instance_that_does_not_fit_names_the_field() -> None:
    registry = MemoryRegistry()
    with pytest.raises(SerializationError) as caught:
        await write(serde_of(registry, Order), Order(UUID(int=1), [Line(5)], 1.0))  # type: ignore[arg-type]
    assert caught.value.field == "lines[0].sku"
    with pytest.raises(SerializationError) as caught:
        await write(serde_of(registry, MOrder), MOrder("x", []))  # type: ignore[arg-type]
    assert caught.value.field == "orderId"
    model = POrder(id=1, lines=[PLine(sku="a")])
    model.lines[0].sku = 5  # type: ignore[assignment]
    with pytest.raises(SerializationError, match="sku: must be str") as caught:
        await write(serde_of(registry, POrder), model)
    assert caught.value.field == "sku"
    with pytest.raises(SerializationError, match="Line"):
        await write(serde_of(registry, Order), Line("a"))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b'{"id": NaN}',
        b'{"id": 1} x',
        b"\xff",
        b"[" * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
    ],
)
async def test_what_is_not_json_is_one_clear_error(payload: bytes) -> None:
    registry = MemoryRegistry()
    for kind in (ORDER, POrder, MOrder, Order):
        for validate in (True, False):
            serde = serde_of(registry, kind, validate=validate)
            await serde.prepare("t")
            prefix = b"\0\0\0\0" + bytes((len(registry.by_id),))
            with pytest.raises(SerializationError):
                await read(serde, prefix + payload)


async def test_references_are_resolved_and_nothing_else_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = MemoryRegistry()
    line = {"type": "object", "properties": {"sku": {"$ref": "sku.json"}}}
    registry.add("sku", Schema('{"type": "string"}', "JSON"))
    to_sku = SchemaReference("sku.json", "sku", 1)
    registry.add("line", Schema(json.dumps(line), "JSON", (to_sku,)))
    schema = {"type": "object", "properties": {"line": {"$ref": "line.json"}}}
    references = [SchemaReference("line.json", "line", 1)]
    serde = serde_of(registry, schema, references=references)
    assert await read(serde, await write(serde, {"line": {"sku": "a"}})) == {
        "line": {"sku": "a"}
    }
    with pytest.raises(SerializationError) as caught:
        await write(serde, {"line": {"sku": 5}})
    assert caught.value.field == "line.sku"

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for target in (
        "http://localhost:9/line.json",
        "#/$defs/None",
        "file:///etc/passwd",
    ):
        serde = serde_of(registry, {"properties": {"line": {"$ref": target}}})
        with pytest.raises(SchemaError, match="neither in it nor among"):
            await write(serde, {"line": {}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be an object"),
        ('{"type": "nothing"}', "is not a JSON schema"),
        ('{"type": 5}', "is not a JSON schema"),
        ('{"properties": ' * 2000 + "{}" + "}" * 2000, "not"),
        (json.dumps({"description": "x" * MOST_TEXT}), "too large"),
    ],
)
async def test_a_schema_that_does_not_parse_is_one_clear_error(
    text: str, reason: str
) -> None:
    registry = MemoryRegistry()
    registry.add("t-value", Schema(text, "JSON"))
    with pytest.raises(SchemaError, match=reason):
        await read(serde_of(registry), b"\0\0\0\0\1{}")
    with pytest.raises(SchemaError, match=reason):
        serde_of(registry, text)


async def test_recursion_without_a_bound_is_one_clear_error() -> None:
    registry = MemoryRegistry()
    endless = serde_of(registry, {"$ref": "#"})
    with pytest.raises(SerializationError, match="nested too deeply"):
        await write(endless, {})
    tree: dict[str, object] = {"properties": {"next": {"$ref": "#"}}}
    value: dict[str, Any] = {}
    for _ in range(10_000):
        value = {"next": value}
    with pytest.raises(SerializationError, match="deep"):
        await write(serde_of(registry, tree), value)


async def test_the_writers_schema_is_the_one_that_is_checked() -> None:
    registry = MemoryRegistry()
    newer = {**ORDER, "properties": {"id": {"type": "string"}}}
    data = await write(serde_of(registry, newer), {"id": "a"})
    assert await read(serde_of(registry), data) == {"id": "a"}
    with pytest.raises(SerializationError) as caught:
        await read(serde_of(registry, POrder), data)
    assert caught.value.field == "id"


async def test_dicts_of_any_schema() -> None:
    registry = MemoryRegistry()
    generic = serde_of(registry, dict)
    data = await write(serde_of(registry), VALUE)
    assert await read(generic, data) == VALUE
    assert generic.schema is None
    with pytest.raises(ConfigurationError, match="use_latest=True or schema_id="):
        await write(generic, VALUE)
    assert await write(serde_of(registry, dict, use_latest=True), VALUE) == data
    assert generic.to_arrow([data]) is None


def test_the_schema_of_a_dataclass_is_closed() -> None:
    schema = json.loads(serde_of(MemoryRegistry(), Line).schema.text)
    assert schema == {
        "title": "Line",
        "type": "object",
        "properties": {
            "sku": {"type": "string"},
            "quantity": {"type": "integer", "default": 1},
        },
        "required": ["sku"],
        "additionalProperties": False,
    }


def test_what_has_no_form_in_json_is_refused() -> None:
    @dataclass
    class Wrong:
        value: complex

    for kind in (Wrong, complex, 7):
        with pytest.raises(Exception, match=r"complex|value|must be a class"):
            serde_of(MemoryRegistry(), kind)


def test_repr_says_what_it_is() -> None:
    serde = serde_of(MemoryRegistry(), POrder, wire="header")
    assert repr(serde) == "JsonSchema(POrder, subject=topic_name, wire='header')"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=10,
)


@given(JSON)
def test_any_json_comes_back_as_it_was(value: Any) -> None:
    if value is not None:
        assert through(ANY, value) == value


ANY = serde_of(MemoryRegistry(), {})


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 0.0, -0.0, 1, 1.0, "", "1", "boolean"])
    | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(st.lists(JSON_VALUES, max_size=4))
def test_items_are_equal_where_jsonschema_says_so(items: list[Any]) -> None:
    schema = {"type": "array", "uniqueItems": True}
    serde: Any = serde_of(MemoryRegistry(), json.dumps(schema))
    data = b"\0\0\0\0\1" + json.dumps(items).encode()
    serde._core._registry.add("t-value", Schema(json.dumps(schema), "JSON"))
    if jsonschema.Draft202012Validator(schema).is_valid(items):
        assert drive(read(serde, data)) == items
    else:
        with pytest.raises(SerializationError, match="'uniqueItems'"):
            drive(read(serde, data))


async def test_many_objects_are_compared_in_little_time() -> None:
    registry = MemoryRegistry()
    serde = serde_of(registry, '{"type": "array", "uniqueItems": true}')
    items = [{"id": number} for number in range(20_000)]
    begin = monotonic()
    data = await write(serde, items)
    assert await read(serde, data) == items
    assert monotonic() - begin < 20  # jsonschema itself takes minutes
