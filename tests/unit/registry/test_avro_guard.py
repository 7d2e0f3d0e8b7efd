"""What fastavro does not check: hostile data, and values that do not fit."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import OrderedDict
from datetime import UTC, date, datetime, time as time_of_day
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.errors import SchemaError, SerializationError
from kafkaio.registry import Avro, Schema
from kafkaio.registry._avro_guard import check_data, compile_check, explain
from kafkaio.registry._avro_schema import MOST_LEVELS, parse
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import drive, read, through, write

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "all", "type": {"type": "array", "items": "Tree"}},
        {"name": "by", "type": {"type": "map", "values": "Tree"}},
    ],
}


def number(value: int) -> bytes:
    """Return a long as Avro has it."""
    raw = (value << 1 ^ value >> 63) & 2**64 - 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def serde_of(schema: Any) -> Avro[Any]:
    registry = MemoryRegistry()
    registry.add("t-value", Schema(json.dumps(schema)))
    return Avro(schema, registry)


def decode(schema: Any, data: bytes) -> Any:
    return drive(read(serde_of(schema), b"\0\0\0\0\1" + data))


# -- data ------------------------------------------------------------------------------


def test_data_that_nests_without_a_bound_is_refused() -> None:
    # fastavro itself ends the process: it recurses in C.
    most = (MOST_LEVELS - 1) * number(1) + number(0)
    assert decode(NODE, most)["next"] is not None
    for count in (MOST_LEVELS + 1, 100_000, 10_000_000):
        with pytest.raises(SerializationError, match="levels deep"):
            decode(NODE, count * number(1) + number(0))


def test_a_tree_comes_back_as_it_was() -> None:
    leaf: dict[str, object] = {"n": 1, "all": [], "by": {}}
    tree = {"n": 2, "all": [leaf, leaf], "by": {"k": {**leaf, "all": [leaf]}}}
    assert through(serde_of(TREE), tree) == tree


def test_values_that_nest_without_a_bound_are_refused() -> None:
    value: dict[str, Any] = {"next": None}
    for _ in range(MOST_LEVELS - 1):
        value = {"next": value}
    assert through(serde_of(NODE), value) == value
    deep: dict[str, Any] = {"next": value}
    for _ in range(100_000):
        deep = {"next": deep}
    cycle: dict[str, Any] = {"next": None}
    cycle["next"] = cycle
    for bad in (deep, cycle):
        with pytest.raises(SerializationError, match="levels deep, or contains itself"):
            through(serde_of(NODE), bad)


def test_the_guard_holds_on_the_stack_of_a_thread() -> None:
    # 512 kB are the least that systems give a thread, but for musl.
    code = (
        "import threading; threading.stack_size(512 * 1024)\n"
        "from tests.unit.registry.test_avro_guard import deepest\n"
        "thread = threading.Thread(target=deepest); thread.start(); thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "deepest\n"), done.stderr


def deepest() -> None:
    """Write and read what is nested as deep as it may be."""
    value: Any = {"n": 1, "all": [], "by": {}}
    for _ in range(MOST_LEVELS // 2 - 1):
        value = {"n": 1, "all": [value], "by": {}}
    assert through(serde_of(TREE), value) == value
    print("deepest")  # noqa: T201 - for the test above


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "E", "fields": []},
        {"type": "record", "name": "E", "fields": [{"name": "x", "type": "null"}]},
    ],
)
def test_items_that_take_no_bytes_are_bounded(items: Any) -> None:
    schema = {"type": "array", "items": items}
    assert len(decode(schema, number(1000) + number(0))) == 1000
    for count in (2**20, 2**60):
        with pytest.raises(SerializationError, match="items that take no bytes"):
            decode(schema, number(count) + number(0))
    with pytest.raises(SerializationError, match="items that take no bytes"):
        decode(schema, (number(60_000) * 3) + number(0))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"type": "array", "items": "long"}, number(2**60)),
        ({"type": "array", "items": "long"}, number(-(2**60)) + number(5)),
        ({"type": "map", "values": "long"}, number(2**60)),
        ({"type": "map", "values": "null"}, number(2**60)),
        ("string", number(2**60)),
        ("bytes", number(2**31) + b"abc"),
        ("string", number(-5) + b"abc"),
        ("string", number(2) + b"\xff\xfe"),
        ("long", b"\xff" * 30),
        ("long", b""),
        ("double", b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, number(7)),
        (["null", "string"], number(9)),
        ({"type": "fixed", "name": "F", "size": 16}, b"abc"),
        ({"type": "fixed", "name": "F", "size": 2**40}, b"abc"),
        ({"type": "long", "logicalType": "timestamp-micros"}, number(2**62)),
        ({"type": "string", "logicalType": "uuid"}, number(3) + b"abc"),
    ],
)
def test_data_that_no_writer_writes_is_one_clear_error(
    schema: Any, data: bytes
) -> None:
    with pytest.raises(SerializationError):
        decode(schema, data)


SCHEMAS = st.sampled_from(
    [
        NODE,
        TREE,
        {"type": "array", "items": "null"},
        {"type": "map", "values": {"type": "array", "items": "string"}},
        ["null", "string", TREE],
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 3}},
    ]
)


@given(SCHEMAS, st.binary(max_size=60))
@settings(max_examples=300)
def test_any_data_gives_a_value_or_one_error(schema: Any, data: bytes) -> None:
    try:
        value = decode(schema, data)
    except SerializationError:
        return
    # What was read can be written.
    assert through(serde_of(schema), value) == value


@given(st.recursive(st.none(), lambda inner: st.lists(inner), max_leaves=20))
def test_the_walk_ends_where_the_data_does(tree: Any) -> None:
    schema = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "all", "type": {"type": "array", "items": "T"}}],
    }

    def value_of(each: Any) -> dict[str, Any]:
        return {"all": [value_of(inner) for inner in each or []]}

    data = drive(write(serde_of(schema), value_of(tree)))
    check_data(parse(schema, {}), data, 5)
    with pytest.raises(SerializationError, match="truncated"):
        check_data(parse(schema, {}), data[:-1], 5)


# -- schemas ---------------------------------------------------------------------------


def decimal_of(size: int | None, precision: int = 4) -> dict[str, object]:
    kind = {"type": "bytes"} if size is None else _fixed(size)
    return {**kind, "logicalType": "decimal", "precision": precision, "scale": 2}


def _fixed(size: int) -> dict[str, object]:
    return {"type": "fixed", "name": "F", "size": size}


def test_a_decimal_of_many_bytes_is_refused_before_it_is_converted() -> None:
    # To convert them would take minutes.
    size = 1_000_000
    amounts = {"type": "array", "items": decimal_of(None)}
    digits = size * b"\x7f"
    for schema, data in (
        (decimal_of(None), number(size) + digits),
        (decimal_of(size), digits),
        (["null", decimal_of(None)], number(1) + number(size) + digits),
        (amounts, number(1) + number(size) + digits + number(0)),
    ):
        begin = time.process_time()
        with pytest.raises(SerializationError, match="a decimal of 1000000 bytes"):
            decode(schema, data)
        assert time.process_time() - begin < 5


@pytest.mark.parametrize("size", [None, 4])
def test_a_decimal_is_not_rounded_to_the_digits_of_its_schema(size: int | None) -> None:
    # fastavro alone reads 1.235E+5.
    unscaled = (12_345_678).to_bytes(4, "big")
    data = unscaled if size else number(4) + unscaled
    assert decode(decimal_of(size), data) == Decimal("123456.78")


def test_an_error_does_not_have_whole_schemas_in_it() -> None:
    fields = [{"name": f"field_{number}", "type": "int"} for number in range(100)]
    serde = serde_of({"type": "record", "name": "Wide", "fields": fields})
    registry: Any = serde._core._registry
    other = registry.add("other", Schema('"int"')).id
    with pytest.raises(SerializationError, match="reader's schema") as raised:
        drive(read(serde, b"\0" + other.to_bytes(4, "big") + number(1)))
    assert len(str(raised.value)) < 400


def test_many_decimals_of_a_large_record_are_read() -> None:
    amounts = {"type": "array", "items": decimal_of(None)}
    items = 10_000 * (number(2) + (1234).to_bytes(2, "big"))
    assert decode(amounts, number(10_000) + items + number(0)) == 10_000 * [
        Decimal("12.34")
    ]


def test_schemas_whose_data_would_nest_or_grow_without_end_are_refused() -> None:
    chain: list[Any] = [
        {
            "type": "record",
            "name": f"R{index}",
            "fields": [{"name": "x", "type": f"R{index + 1}"}],
        }
        for index in range(1000)
    ]
    last = {"type": "record", "name": "R1000", "fields": []}
    doubled: list[Any] = [{"type": "record", "name": "D0", "fields": []}]
    doubled += [
        {
            "type": "record",
            "name": f"D{index}",
            "fields": [
                {"name": "a", "type": f"D{index - 1}"},
                {"name": "b", "type": f"D{index - 1}"},
            ],
        }
        for index in range(1, 40)
    ]
    with pytest.raises(SchemaError, match="deep"):
        parse([last, *reversed(chain)], {})
    with pytest.raises(SchemaError, match="more than 100000 fields"):
        parse(doubled, {})


def test_a_cycle_is_found_and_a_repetition_is_none() -> None:
    assert parse(NODE, {}).has_cycle
    pair = {
        "type": "record",
        "name": "Pair",
        "fields": [
            {"name": "a", "type": {"type": "record", "name": "E", "fields": []}},
            {"name": "b", "type": "E"},
        ],
    }
    parsed = parse(pair, {})
    assert not parsed.has_cycle
    assert not parsed.needs_guard


# -- values ----------------------------------------------------------------------------

AWARE = datetime(2024, 1, 1, tzinfo=UTC)
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
LONGS = {"type": "array", "items": "long"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("null", [None], [0, ""]),
        ("boolean", [True, False], [0, 1, "yes", None]),
        ("int", [0, -(2**31), 2**31 - 1], [2**31, -(2**31) - 1, 1.5, True, "1", None]),
        ("long", [2**63 - 1, -(2**63)], [2**63, 1.0, "1", False]),
        ("float", [1.5, math.inf, 7], [1e300, "x", True, None]),
        ("double", [1e300, 5], ["x", None, True]),
        ("string", ["a", ""], [b"a", 5, None, "\ud800"]),
        ("bytes", [b"a", bytearray(b"b")], ["a", 5]),
        (LONGS, [[1], (1, 2), []], ["ab", {"a": 1}, [1, "x"], [1.5], None, 5]),
        (
            {"type": "array", "items": "string"},
            [["a"]],
            ["abc", [5], {"a": 1}],
        ),
        ({"type": "map", "values": "int"}, [{"a": 1}], [{1: 1}, {"a": 2**40}, [1]]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"], ["B", 0, None]),
        ({"type": "fixed", "name": "F", "size": 2}, [b"ab"], [b"abc", "ab"]),
        (MICROS, [AWARE, 5], [1.5, "2024", None, True, AWARE.replace(tzinfo=None)]),
        (["null", MICROS], [AWARE, None], [1.5, AWARE.replace(tzinfo=None)]),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            [AWARE.replace(tzinfo=None)],
            ["2024"],
        ),
        (["null", {"type": "string", "logicalType": "uuid"}], [UUID(int=1)], ["abc"]),
        (["boolean", "null"], [True, None], [1]),
        ({"type": "int", "logicalType": "date"}, [date(2024, 1, 1)], ["2024", 1.5]),
        (
            {"type": "long", "logicalType": "time-micros"},
            [time_of_day(1, 2)],
            [1.5, "12:00"],
        ),
        (
            DECIMAL,
            [Decimal("12.34"), Decimal(0), Decimal("-99.99")],
            [Decimal("100.00"), Decimal("1.234"), 1.5, "1", Decimal("NaN")],
        ),
        ({"type": "string", "logicalType": "uuid"}, [UUID(int=1)], ["abc", 5]),
        (["null", "long"], [None, 5], [1.5, "x", True, 2**63]),
        (["null", LONGS], [None, [1]], [["x"], "ab"]),
        (["null", "int", "string"], [None, "a", 1], [1.5, b"a", 2**40]),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]},
            [{"a": 1}, {"a": 1, "more": 2}, OrderedDict(a=1)],
            [{}, {"a": None}, 5, None, [], "a"],
        ),
    ],
)
def test_what_fits_is_written_and_what_does_not_is_not(
    schema: Any, good: list[Any], bad: list[Any]
) -> None:
    serde = serde_of(schema)
    for value in good:
        through(serde, value)
    for value in bad:
        with pytest.raises(SerializationError):
            through(serde, value)
        assert explain(parse(schema, {}), value) is not None
    for value in good:
        assert explain(parse(schema, {}), value) is None


def test_a_quick_check_never_says_that_what_does_not_fit_does() -> None:
    parsed = parse(TREE, {})
    check = compile_check(parsed)
    assert check is not None
    leaf: dict[str, Any] = {"n": 1, "all": [], "by": {}}
    assert check({**leaf, "all": [leaf], "by": {"a": leaf}})
    for bad in ({**leaf, "n": 2**31}, {**leaf, "all": [{**leaf, "n": "x"}]}):
        assert not check(bad)
    assert compile_check(parse({"type": "map", "values": "string"}, {})) is not None
    assert compile_check(parse("string", {})) is None


def test_a_value_that_may_be_left_out_is_its_default() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "count", "type": "int", "default": 7},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
    assert through(serde_of(schema), {}) == {"count": 7, "note": None}
    with pytest.raises(SerializationError) as caught:
        through(serde_of(schema), {"count": "x"})
    assert caught.value.field == "count"


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ({"lines": [{"amount": 1}, {"amount": "x"}]}, "lines[1].amount", "an int"),
        ({"lines": [{"amount": 1}, {}]}, "lines[1].amount", "is missing"),
        ({"lines": [{"amount": 1}, 5]}, "lines[1]", "must be a dict for Line, not int"),
        ({}, "lines", "is missing"),
        (5, "", "the value must be a dict for Order"),
        ({"lines": [], "by": {"a-b": {"amount": 2**40}}}, "by['a-b'].amount", "range"),
        ({"lines": [], "either": {"amount": "x"}}, "either.amount", "an int"),
    ],
)
def test_an_error_names_the_field_and_not_the_value(
    value: Any, field: str, reason: str
) -> None:
    line = {
        "type": "record",
        "name": "Line",
        "fields": [{"name": "amount", "type": "int"}],
    }
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "lines", "type": {"type": "array", "items": line}},
            {"name": "by", "type": {"type": "map", "values": "Line"}, "default": {}},
            {"name": "either", "type": ["null", "Line"], "default": None},
        ],
    }
    with pytest.raises(SerializationError, match=reason) as caught:
        through(serde_of(schema), value)
    assert caught.value.field == field


def test_explain_agrees_with_fastavro_on_unions() -> None:
    schema = [
        "null",
        {**NODE, "name": "A"},
        {"type": "map", "values": "long"},
        "string",
    ]
    schema[1]["fields"] = [{"name": "x", "type": "long"}]  # type: ignore[index]
    parsed = parse(schema, {})
    for value in (None, {"x": 1}, {"y": 1}, "a", ("A", {"x": 1}), 5, {"x": "a"}, [1]):
        try:
            fastavro.validate(value, parsed.schema)
            fits = True
        except fastavro.validation.ValidationError:
            fits = False
        assert (explain(parsed, value) is None) == fits, value
    assert explain(parsed, ("B", {})) is not None
