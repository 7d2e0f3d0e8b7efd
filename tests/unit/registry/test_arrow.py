"""Whole batches as Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pyarrow as pa
import pytest

from kafkaio.errors import ConfigurationError, SerializationError
from kafkaio.registry import Avro, AvroAs, JsonSchema, Schema, SchemaReference, decimal
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import drive, read, write

UTC = UTC


class Status(Enum):
    NEW = "new"


@dataclass
class Line:
    sku: str
    quantity: int


@dataclass
class Gift:
    to: str


@dataclass
class Order:
    id: UUID
    amount: float
    price: Annotated[Decimal, AvroAs(decimal(precision=9, scale=2))]
    created: datetime
    day: date
    at: time
    lines: list[Line]
    status: Status = Status.NEW
    note: str | None = None
    raw: bytes = b""
    by: dict[str, Line] = field(default_factory=dict)
    extra: Line | Gift | None = None
    mixed: int | str | None = None
    ok: bool = True


ORDER = Order(
    UUID(int=1),
    1.5,
    Decimal("2.50"),
    datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    date(2024, 1, 2),
    time(1, 2, 3),
    [Line("a", 1), Line("b", 2)],
    note="n",
    raw=b"\xff",
    by={"k": Line("c", 3)},
    extra=Gift("me"),
    mixed="text",
)


async def columns(serde: Any, *values: Any, reader: Any = None) -> Any:
    """Return the Arrow array of values, after one was read."""
    data: list[bytes | None] = [
        None if value is None else await write(serde, value) for value in values
    ]
    return await of_bytes(reader or serde, data)


async def of_bytes(serde: Any, data: Sequence[bytes | None]) -> Any:
    array = serde.to_arrow(data)
    while array is None:
        for each in data:
            if each is not None:
                await read(serde, each)
        array = serde.to_arrow(data)
    return array


async def test_a_class_of_avro_as_columns() -> None:
    array = await columns(Avro(Order, MemoryRegistry()), ORDER, None, ORDER)
    assert array.type == pa.struct(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("amount", pa.float64(), nullable=False),
            pa.field("price", pa.decimal128(9, 2), nullable=False),
            pa.field("created", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("day", pa.date32(), nullable=False),
            pa.field("at", pa.time64("us"), nullable=False),
            pa.field("lines", pa.list_(LINE), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("note", pa.string()),
            pa.field("raw", pa.binary(), nullable=False),
            pa.field("by", pa.map_(pa.string(), LINE), nullable=False),
            pa.field("extra", pa.struct([("member0", LINE), ("member1", GIFT)])),
            pa.field(
                "mixed", pa.struct([("member0", pa.int64()), ("member1", pa.string())])
            ),
            pa.field("ok", pa.bool_(), nullable=False),
        ]
    )
    assert array.null_count == 1
    found = array.to_pylist()[2]
    assert found == {
        "id": str(ORDER.id),
        "amount": 1.5,
        "price": Decimal("2.50"),
        "created": ORDER.created,
        "day": ORDER.day,
        "at": ORDER.at,
        "lines": [{"sku": "a", "quantity": 1}, {"sku": "b", "quantity": 2}],
        "status": "new",
        "note": "n",
        "raw": b"\xff",
        "by": [("k", {"sku": "c", "quantity": 3})],
        "extra": {"member0": None, "member1": {"to": "me"}},
        "mixed": {"member0": None, "member1": "text"},
        "ok": True,
    }


LINE = pa.struct(
    [
        pa.field("sku", pa.string(), nullable=False),
        pa.field("quantity", pa.int64(), nullable=False),
    ]
)
GIFT = pa.struct([pa.field("to", pa.string(), nullable=False)])


@pytest.mark.parametrize(
    ("schema", "values", "kind"),
    [
        ("null", [None], pa.null()),
        ("int", [1, 2**31 - 1], pa.int32()),
        ("float", [1.5], pa.float32()),
        ("bytes", [b"a"], pa.binary()),
        ({"type": "fixed", "name": "F", "size": 2}, [b"ab"], pa.binary(2)),
        (
            {"type": "array", "items": ["null", "long"]},
            [[1, None]],
            pa.list_(pa.int64()),
        ),
        (["null", "int", "long"], [5], pa.int64()),
        (["float", "double"], [1.5], pa.float64()),
        (["null"], [], pa.null()),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            [datetime(2024, 1, 1)],  # noqa: DTZ001 - a local one
            pa.timestamp("us"),
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            [datetime(2024, 1, 1, tzinfo=UTC)],
            pa.timestamp("ms", "UTC"),
        ),
        ({"type": "int", "logicalType": "time-millis"}, [time(1)], pa.time32("ms")),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 1},
            [Decimal("1.5")],
            pa.decimal256(50, 1),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 99, "scale": 1},
            [Decimal("1.5")],
            pa.string(),
        ),
        (
            {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
            [bytes(16)],
            pa.binary(16),
        ),
    ],
)
async def test_types_of_avro_as_columns(
    schema: Any, values: list[Any], kind: Any
) -> None:
    array = await columns(Avro(schema, MemoryRegistry()), *values)
    assert array.type == kind
    if kind != pa.string():
        assert array.to_pylist() == values
    else:
        assert array.to_pylist() == [str(value) for value in values]


async def test_what_is_inside_of_lists_and_maps_as_columns() -> None:
    large = {"type": "bytes", "logicalType": "decimal", "precision": 99, "scale": 1}
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    line = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": large}]}
    either = ["null", "long", enum, "boolean", "bytes", line]
    fields = [
        {"name": "all", "type": {"type": "array", "items": either}},
        {"name": "by", "type": {"type": "map", "values": ["null", large]}},
    ]
    schema = {"type": "record", "name": "R", "fields": fields}
    value = {
        "all": [5, None, "A", True, b"x", {"n": Decimal("1.5")}],
        "by": {"a": Decimal("2.5"), "b": None},
    }
    array = await columns(Avro(schema, MemoryRegistry()), value)
    found = array[0].as_py()
    assert found["by"] == [("a", "2.5"), ("b", None)]
    none = dict.fromkeys(f"member{place}" for place in range(5))
    assert found["all"] == [
        none | {"member0": 5},
        None,
        none | {"member1": "A"},
        none | {"member2": True},
        none | {"member3": b"x"},
        none | {"member4": {"n": "1.5"}},
    ]


async def test_writers_may_differ_within_a_batch() -> None:
    registry = MemoryRegistry()
    fields = [{"name": "to", "type": "string"}]
    longer = [*fields, {"name": "more", "type": "string"}]
    record = {"type": "record", "name": "Gift"}
    old = Avro({**record, "fields": fields}, registry)
    new = Avro({**record, "fields": longer}, registry)
    data = [
        await write(old, {"to": "a"}),
        await write(new, {"to": "b", "more": "x"}),
        None,
    ]
    array = await of_bytes(Avro(Gift, registry), data)
    assert array.to_pylist() == [{"to": "a"}, {"to": "b"}, None]
    defaults = [*fields, {"name": "more", "type": "string", "default": "d"}]
    reader = Avro({**record, "fields": defaults}, registry)
    assert (await of_bytes(reader, data)).to_pylist() == [
        {"to": "a", "more": "d"},
        {"to": "b", "more": "x"},
        None,
    ]


async def test_a_schema_that_is_not_cached_is_none() -> None:
    registry = MemoryRegistry()
    data = [await write(Avro(Gift, registry), Gift("a"))]
    registry.cached_ids.clear()
    other = Avro(Gift, registry)
    assert other.to_arrow(data) is None
    await read(other, data[0])
    assert other.to_arrow(data) is not None


async def test_schemas_that_refer_to_others_as_columns() -> None:
    registry = MemoryRegistry()
    line = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}
    registry.add("line", Schema(json.dumps(line)))
    schema = {"type": "array", "items": "Line"}
    references = [SchemaReference("Line", "line", 1)]
    serde = Avro(schema, registry, references=references)
    assert serde.to_arrow([None, None]) == pa.nulls(2)
    array = await columns(serde, [{"n": 1}], None)
    assert array.to_pylist() == [[{"n": 1}], None]


async def test_tombstones_alone_have_the_type_of_the_schema() -> None:
    array = Avro(Gift, MemoryRegistry()).to_arrow([None, None])
    assert array is not None
    assert array.type == GIFT
    assert array.null_count == 2


async def test_bytes_that_cannot_be_read_say_where_they_are() -> None:
    registry = MemoryRegistry()
    for serde in (Avro(Gift, registry), JsonSchema(Gift, MemoryRegistry())):
        data = await write(serde, Gift("a"))
        await read(serde, data)
        with pytest.raises(SerializationError, match="value 1 of the batch"):
            serde.to_arrow([data, data[:-1]])
        with pytest.raises(SerializationError, match="value 2 of the batch"):
            serde.to_arrow([data, None, b"\7"])


def test_a_schema_that_refers_to_itself_has_no_columns() -> None:
    node = {
        "type": "record",
        "name": "N",
        "fields": [{"name": "n", "type": ["null", "N"]}],
    }
    with pytest.raises(ConfigurationError, match="refers to itself"):
        Avro(node, MemoryRegistry()).to_arrow([None])
    tree = {"properties": {"n": {"$ref": "#"}}}
    with pytest.raises(ConfigurationError, match="refers to itself"):
        JsonSchema(tree, MemoryRegistry()).to_arrow([None])


async def test_defaults_of_older_records_are_not_shared() -> None:
    registry = MemoryRegistry()
    old = Avro({"type": "record", "name": "R", "fields": []}, registry)
    fields = [
        {"name": "by", "type": {"type": "map", "values": "int"}, "default": {}},
        {"name": "at", "type": {"type": "int", "logicalType": "date"}, "default": 1},
    ]
    new = Avro({"type": "record", "name": "R", "fields": fields}, registry)
    array = await of_bytes(new, [await write(old, {})] * 2)
    assert array.to_pylist() == [{"by": [], "at": date(1970, 1, 2)}] * 2


# -- JSON ------------------------------------------------------------------------------

PROPERTIES: dict[str, object] = {
    "id": {"type": "integer"},
    "amount": {"type": "number"},
    "ok": {"type": "boolean"},
    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "other": {"type": ["string", "null"]},
    "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
}
JSON_ORDER: dict[str, object] = {
    "title": "Order",
    "type": "object",
    "properties": PROPERTIES,
    "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
}
JSON_VALUE: dict[str, object] = {
    "id": 1,
    "amount": 2,
    "ok": True,
    "note": "n",
    "other": None,
    "lines": [{"sku": "a"}, {}],
    "unknown": {"a": 1},
}
JSON_COLUMNS = {
    "id": 1,
    "amount": 2.0,
    "ok": True,
    "note": "n",
    "other": None,
    "lines": [{"sku": "a"}, {"sku": None}],
}


async def test_a_json_schema_as_columns() -> None:
    serde = JsonSchema(JSON_ORDER, MemoryRegistry())
    array = await columns(serde, JSON_VALUE, None, {}, JSON_VALUE)
    assert array.type == pa.struct(
        [
            ("id", pa.int64()),
            ("amount", pa.float64()),
            ("ok", pa.bool_()),
            ("note", pa.string()),
            ("other", pa.string()),
            ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ]
    )
    nothing = dict.fromkeys(JSON_COLUMNS)
    assert array.to_pylist() == [JSON_COLUMNS, None, nothing, JSON_COLUMNS]


@pytest.mark.parametrize(
    "text",
    [
        b'{\n "id": 1,\n "note": "a\\nb"\n}',
        b' {"id": 1, "note": "a\\nb"} ',
        b'{"id": 1, "note": "a\\u000ab", "x": [1, "a", {}]}',
    ],
)
async def test_any_spelling_of_json_is_read(text: bytes) -> None:
    serde = JsonSchema(JSON_ORDER, MemoryRegistry())
    await serde.prepare("t")
    data = b"\0\0\0\0\1" + text
    for batch in ([data], [data] * 3, [None, data]):
        array = await of_bytes(serde, batch)
        assert array[len(batch) - 1].as_py()["note"] == "a\nb"


@pytest.mark.parametrize(
    "text",
    [
        b'{"id": 1}{"id": 2}',
        b'{"id": 1',
        b"",
        b'{"id": "x"}',
        b'{"id": 1.5}',
        b'{"id": 99999999999999999999}',
        b'{"note": "\xff"}',
        b'{"lines": {}}',
        b"[]",
        b"null",
    ],
)
async def test_json_that_does_not_fit_is_an_error(text: bytes) -> None:
    serde = JsonSchema(JSON_ORDER, MemoryRegistry())
    good = await write(serde, {"id": 1})
    await read(serde, good)
    bad = good[:5] + text
    for batch in ([bad], [good, bad], [good, bad, good[:5]]):
        with pytest.raises(SerializationError):
            serde.to_arrow(batch)


@dataclass
class Event:
    id: UUID
    at: datetime
    day: date
    hour: time
    price: Decimal
    raw: bytes
    by: dict[str, int]
    status: Status
    either: int | str
    anything: Any


async def test_a_class_of_json_as_columns() -> None:
    event = Event(
        UUID(int=1),
        datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        date(2024, 1, 2),
        time(1, 2),
        Decimal("1.5"),
        b"\xff",
        {"a": 1},
        Status.NEW,
        5,
        [1, {"a": None}],
    )
    array = await columns(JsonSchema(Event, MemoryRegistry()), event, None)
    assert array.type == pa.struct(
        [
            ("id", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("hour", pa.time64("us")),
            ("price", pa.string()),
            ("raw", pa.string()),
            ("by", pa.map_(pa.string(), pa.int64())),
            ("status", pa.string()),
            ("either", pa.string()),
            ("anything", pa.string()),
        ]
    )
    assert array[0].as_py() == {
        "id": str(event.id),
        "at": event.at,
        "day": event.day,
        "hour": event.hour,
        "price": "1.5",
        "raw": "/w==",
        "by": [("a", 1)],
        "status": "new",
        "either": "5",
        "anything": '[1,{"a":null}]',
    }


def test_arrow_needs_no_event_loop() -> None:
    registry = MemoryRegistry()
    serde = Avro(Gift, registry)
    data = drive(write(serde, Gift("a")))
    drive(read(serde, data))
    array = serde.to_arrow([data])
    assert array is not None
    assert array.to_pylist() == [{"to": "a"}]
