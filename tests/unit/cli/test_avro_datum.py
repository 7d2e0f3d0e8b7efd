"""Values of Avro as people type them, and as they are printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given, strategies as st

from kafkaio._cli.records.avro_datum import datum_of
from kafkaio._cli.records.decoded import tree_of, write_json
from kafkaio.errors import SerializationError
from kafkaio.registry._avro_schema import parse


def logical(kind: str, name: str, **more: object) -> dict[str, object]:
    return {"type": kind, "logicalType": name, **more}


SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": logical("string", "uuid")},
        {"name": "amount", "type": logical("bytes", "decimal", precision=30, scale=4)},
        {"name": "at", "type": logical("long", "timestamp-micros")},
        {"name": "local", "type": logical("long", "local-timestamp-micros")},
        {"name": "day", "type": logical("int", "date")},
        {"name": "time", "type": logical("long", "time-micros")},
        {"name": "raw", "type": "bytes"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "share", "type": "double"},
        {"name": "count", "type": "long"},
        {"name": "paid", "type": "boolean"},
        {
            "name": "state",
            "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]},
        },
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "price", "type": ["null", "double"], "default": None},
                    ],
                },
            },
        },
        {"name": "stock", "type": {"type": "map", "values": "Line"}},
        {
            "name": "who",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Person",
                    "fields": [{"name": "name", "type": "string"}],
                },
                {
                    "type": "record",
                    "name": "Company",
                    "fields": [{"name": "vat", "type": "long"}],
                },
            ],
        },
    ],
}
PARSED = parse(SCHEMA, {})

longs = st.integers(-(2**63), 2**63 - 1)
EPOCH = datetime.fromisoformat("1970-01-01")
times = st.datetimes(EPOCH, EPOCH.replace(2200))
numbers = st.floats(allow_nan=False)
lines = st.fixed_dictionaries({"sku": st.text(), "price": st.none() | numbers})
orders = st.fixed_dictionaries(
    {
        "id": st.uuids(),
        "amount": st.decimals(-(10**20), 10**20, places=4),
        "at": times.map(lambda each: each.replace(tzinfo=UTC)),
        "local": times,
        "day": st.dates(),
        "time": st.times(),
        "raw": st.binary(),
        "four": st.binary(min_size=4, max_size=4),
        "share": numbers,
        "count": longs,
        "paid": st.booleans(),
        "state": st.sampled_from(["NEW", "OLD"]),
        "note": st.none() | st.text(),
        "lines": st.lists(lines, max_size=3),
        "stock": st.dictionaries(st.text(), lines, max_size=3),
        "who": st.none()
        | st.fixed_dictionaries({"name": st.text()})
        | st.fixed_dictionaries({"vat": longs}),
    }
)


def encoded(datum: object) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, PARSED.schema, datum)
    return stream.getvalue()


@given(order=orders)
def test_what_is_printed_is_read(order: dict[str, Any]) -> None:
    data = encoded(order)
    read = fastavro.schemaless_reader(BytesIO(data), PARSED.schema, None)
    printed = write_json(tree_of(read))
    typed = json.loads(printed, parse_float=Decimal)
    assert encoded(datum_of(PARSED, typed)) == data


GOOD: dict[str, Any] = {
    "id": "123e4567-e89b-12d3-a456-426614174000",
    "amount": "1.5",
    "at": "2026-01-02T03:04:05Z",
    "local": "2026-01-02T03:04:05",
    "day": "2026-01-02",
    "time": "03:04:05",
    "raw": "text",
    "four": {"base64": "AAEC/w=="},
    "share": 1,
    "count": 2,
    "paid": True,
    "state": "NEW",
    "lines": [{"sku": "a"}],
    "stock": {},
    "who": {"shop.Company": {"vat": 5}},
}


def test_the_forms_of_avros_own_json_are_taken() -> None:
    datum: Any = datum_of(PARSED, {**GOOD, "note": {"string": "x"}})
    assert datum["note"] == "x"
    assert datum["who"] == ("shop.Company", {"vat": 5})
    assert datum["four"] == b"\x00\x01\x02\xff"
    datum = datum_of(PARSED, {**GOOD, "who": {"Person": {"name": "a"}}})
    assert datum["who"] == ("shop.Person", {"name": "a"})


def test_a_time_without_a_zone_is_utc() -> None:
    datum: Any = datum_of(PARSED, {**GOOD, "at": "2026-01-02T03:04:05"})
    assert datum["at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    datum = datum_of(PARSED, {**GOOD, "at": 7})
    assert datum["at"] == 7


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"id": "x"}, "id"),
        ({"amount": "x"}, "amount"),
        ({"amount": "1.00001"}, "amount"),
        ({"at": "now"}, "at"),
        ({"raw": {"base64": "%"}}, "raw"),
        ({"raw": 5}, "raw"),
        ({"four": "abc"}, "four"),
        ({"share": "x"}, "share"),
        ({"count": Decimal("1.5")}, "count"),
        ({"count": 2**63}, "count"),
        ({"paid": 1}, "paid"),
        ({"state": "GONE"}, "state"),
        ({"note": 5}, "note"),
        ({"lines": [{"sku": "a"}, {}]}, "lines[1].sku"),
        ({"lines": [{"sku": "a", "x": 1}]}, "lines[0].x"),
        ({"stock": {"a": {"sku": 1}}}, "stock.a.sku"),
        ({"stock": {"a": {"sku": "a", "y": 1}}}, "stock.a.y"),
        ({"who": {"vat": "x"}}, "who"),
        ({"nope": 1}, "nope"),
    ],
)
def test_the_field_that_does_not_fit_is_named(
    changed: dict[str, object], place: str
) -> None:
    with pytest.raises(SerializationError) as caught:
        datum_of(PARSED, GOOD | changed)
    assert caught.value.field.startswith(place)
    assert place in str(caught.value)
