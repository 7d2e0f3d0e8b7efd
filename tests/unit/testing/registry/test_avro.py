"""Avro schemas of the embedded registry: what fastavro reads is compatible."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import event, given, settings

from kafkaio.testing._registry.avro import parse, to_text
from kafkaio.testing._registry.avro_compatibility import differences
from kafkaio.testing._registry.errors import InvalidSchema
from tests.unit.testing.registry.avro_schemas import evolutions, schemas


def kinds(reader: Any, writer: Any) -> list[str]:
    """Why the reader cannot read what the writer wrote, by the names of the reasons."""
    found = differences(parse(json.dumps(reader)), parse(json.dumps(writer)))
    return [each.kind for each in found]


def record(*fields: Any, **more: Any) -> Any:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(name: str, kind: Any = "int", **more: Any) -> Any:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> Any:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> Any:
    return {"type": "fixed", "name": name, "size": size, **more}


def read_back(value: Any, writer: Any, reader: Any) -> Any:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), value)
    out.seek(0)
    return fastavro.schemaless_reader(
        out, fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    )


@settings(max_examples=200)
@given(evolutions(is_safe=False))
def test_what_is_compatible_is_read(evolution: tuple[Any, Any, Any]) -> None:
    writer, value, reader = evolution
    if found := kinds(reader, writer):
        event(found[0])
        return
    event("compatible")
    read_back(value, writer, reader)


@settings(max_examples=200)
@given(evolutions(is_safe=True))
def test_a_change_that_the_specification_allows_is_compatible(
    evolution: tuple[Any, Any, Any],
) -> None:
    writer, value, reader = evolution
    assert kinds(reader, writer) == []
    read_back(value, writer, reader)


@settings(max_examples=100)
@given(schemas())
def test_a_schema_reads_itself_and_its_text_is_stable(schema: Any) -> None:
    parsed = parse(json.dumps(schema))
    text = to_text(parsed)
    assert to_text(parse(text)) == text
    assert differences(parsed, parse(text)) == []
    assert fastavro.schema.to_parsing_canonical_form(
        json.loads(text)
    ) == fastavro.schema.to_parsing_canonical_form(schema)


@pytest.mark.parametrize(
    ("reader", "writer", "reasons"),
    [
        ("long", "int", []),
        ("double", "long", []),
        ("bytes", "string", []),
        ("string", "bytes", []),
        ("int", "long", ["TYPE_MISMATCH"]),
        ("string", "int", ["TYPE_MISMATCH"]),
        (["null", "int"], "int", []),
        (["null", "long"], "int", []),
        (["null", "string"], "int", ["MISSING_UNION_BRANCH"]),
        ("int", ["int"], []),
        ("int", ["null", "int"], ["TYPE_MISMATCH"]),
        (["null", "int", "string"], ["int", "null"], []),
        (["null"], ["int", "null"], ["MISSING_UNION_BRANCH"]),
        (record(), record(field("a")), []),
        (record(field("a")), record(), ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
        (record(field("a", default=1)), record(), []),
        (record(field("a", ["null", "int"], default=None)), record(), []),
        (record(field("b", aliases=["a"])), record(field("a")), []),
        (record(field("a", "int")), record(field("a", "long")), ["TYPE_MISMATCH"]),
        (record(name="S"), record(), ["NAME_MISMATCH"]),
        (record(name="S", aliases=["R"]), record(), []),
        (record(namespace="other"), record(namespace="one"), []),
        (enum("A", "B"), enum("A"), []),
        (enum("A"), enum("A", "B"), ["MISSING_ENUM_SYMBOLS"]),
        (enum("A", default="A"), enum("A", "B"), []),
        (enum("A", name="X"), enum("A"), ["NAME_MISMATCH"]),
        (fixed(4), fixed(4), []),
        (fixed(4), fixed(8), ["FIXED_SIZE_MISMATCH"]),
        (fixed(4, "G"), fixed(4), ["NAME_MISMATCH"]),
        (fixed(4, "G", aliases=["F"]), fixed(4), []),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
        (
            {"type": "map", "values": "int"},
            {"type": "map", "values": "string"},
            ["TYPE_MISMATCH"],
        ),
        ({"type": "array", "items": "int"}, "int", ["TYPE_MISMATCH"]),
    ],
)
def test_each_rule(reader: Any, writer: Any, reasons: list[str]) -> None:
    assert kinds(reader, writer) == reasons


def test_a_recursive_schema() -> None:
    def tree(*more: Any) -> Any:
        children = {"type": "array", "items": "R"}
        return record(field("children", children), *more)

    assert kinds(tree(), tree(field("a"))) == []
    assert kinds(tree(field("a")), tree()) == ["READER_FIELD_MISSING_DEFAULT_VALUE"]


def test_a_branch_that_failed_leaves_nothing_behind() -> None:
    """A pair of records that is being compared is taken to agree only meanwhile."""
    old = record(field("a", {"type": "array", "items": "R"}), field("b", "int"))
    wrong = record(field("a", {"type": "array", "items": "R"}), field("b", "string"))
    # The second branch reads it only if its field may hold the first one's record.
    other = record(field("a", {"type": "array", "items": "R"}), name="S", aliases=["R"])
    assert kinds([wrong, "null"], old) == ["MISSING_UNION_BRANCH"]
    assert kinds([wrong, other], old) == ["MISSING_UNION_BRANCH"]


def test_messages_name_the_schemas_by_their_age() -> None:
    (found,) = differences(parse('"int"'), parse('"string"'))
    assert found.message("new", "old") == (
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in "
        "the new schema does not match with the old schema', additionalInfo:'reader "
        "type: INT not compatible with writer type: STRING'}"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON"),
        ("7", "7 is not a type"),
        ('{"type": 7}', "No type"),
        ('"Order"', 'Undefined schema: "Order"'),
        ('{"type":"array"}', "No items type"),
        ('{"type":"map"}', "No values type"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","name":"R-1","fields":[]}', "Illegal name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "No field type"),
        (json.dumps(record(field("a"), field("a"))), "Duplicate field a"),
        (json.dumps(record(field("a", default="x"))), "Invalid default for field a"),
        (json.dumps(record(field("a", order="up"))), "Illegal order"),
        (json.dumps(enum("A", "A")), "Duplicate enum symbol"),
        (json.dumps(enum("1")), "Illegal name"),
        (json.dumps(enum("A", default="B")), "not in the enum symbol set"),
        (json.dumps(fixed(-1)), "Invalid or no size"),
        ('["int","int"]', "Duplicate in union: int"),
        ('["int",["null"]]', "Nested union"),
        (json.dumps([record(), record()]), "Can't redefine: R"),
        ("[" * 100_000, "nested too deeply|is not JSON"),
    ],
)
def test_what_is_not_a_schema(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse(text)


def test_the_text_is_that_of_javas_parser() -> None:
    text = """{
        "name": "Order", "namespace": "shop", "type": "record", "owner": "me",
        "doc": "An order", "aliases": ["Purchase"],
        "fields": [
            {"name": "id", "default": 1, "type": {"type": "long"}},
            {"type": {"name": "shop.Kind", "type": "enum", "symbols": ["A"]},
             "name": "kind"},
            {"name": "again", "type": "Kind"},
            {"name": "at", "type": {"type": "long", "logicalType": "date"}}
        ]
    }"""
    assert to_text(parse(text)) == (
        '{"type":"record","name":"Order","namespace":"shop","doc":"An order",'
        '"fields":[{"name":"id","type":"long","default":1},{"name":"kind","type":'
        '{"type":"enum","name":"Kind","symbols":["A"]}},{"name":"again","type":"Kind"}'
        ',{"name":"at","type":{"type":"long","logicalType":"date"}}],"owner":"me",'
        '"aliases":["Purchase"]}'
    )


def test_names_of_references_are_known() -> None:
    line = '{"type":"record","name":"shop.Line","fields":[]}'
    order = record(field("line", "shop.Line"))
    text = to_text(parse(json.dumps(order), [line]))
    # A name that a reference defines stays a name.
    assert text == to_text(parse(text, [line]))
