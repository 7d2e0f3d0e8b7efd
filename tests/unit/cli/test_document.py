"""What a command prints: the table and the schema follow from its declaration."""

from __future__ import annotations

import json

import pytest

from codegen.cli_schemas import SCHEMAS, sources
from kafkaio._cli.text.document import (
    BOOLEAN,
    BYTES,
    INTEGER,
    TEXT,
    Document,
    fields,
    many,
    mapping_of,
    one_of,
    picked,
    rows,
)
from kafkaio.types import TopicPartition

PARTITIONS = Document(
    done=BOOLEAN,
    partitions=rows(
        topic=TEXT.doc("Its name."),
        partition=INTEGER.or_null.column("NO"),
        replicas=many(INTEGER).hidden,
        state=one_of("moving", "there").optional,
    ),
)
STATUS = Document(leader=INTEGER.or_null, voters=many(INTEGER), secret=TEXT.hidden)


def test_the_schemas_are_what_the_commands_declare() -> None:
    found = {path.name: path.read_text("utf-8") for path in SCHEMAS.glob("*.json")}
    assert found == sources(), "run python -m codegen.cli_schemas"


def test_the_schema_follows_from_the_declaration() -> None:
    assert PARTITIONS.to_schema() == {
        "type": "object",
        "required": ["done", "partitions", "errors"],
        "properties": {
            "done": {"type": "boolean"},
            "partitions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["topic", "partition", "replicas"],
                    "properties": {
                        "topic": {"description": "Its name.", "type": "string"},
                        "partition": {"type": ["integer", "null"]},
                        "replicas": {"type": "array", "items": {"type": "integer"}},
                        "state": {"enum": ["moving", "there"]},
                    },
                    "additionalProperties": False,
                },
            },
            "errors": {"$ref": "common.json#/$defs/errors"},
        },
        "additionalProperties": False,
    }


def test_schemas_of_objects_with_any_keys() -> None:
    shape = mapping_of(fields(value=BYTES)).having("p50").or_null
    assert shape.to_schema() == {
        "type": ["object", "null"],
        "required": ["p50"],
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "properties": {"value": {"$ref": "common.json#/$defs/bytes"}},
            "additionalProperties": False,
        },
    }


def test_the_table_of_a_list_has_its_rows() -> None:
    row = {"topic": "t", "partition": 0, "replicas": [1], "state": "there"}
    table = PARTITIONS.table({"done": True, "partitions": [row]})
    assert table.rows == [row]
    assert [each.head for each in table.heads()] == ["TOPIC", "NO", "STATE"]
    also = PARTITIONS.row.columns("replicas")
    assert [each.key for each in also] == ["topic", "partition", "state", "replicas"]
    assert not PARTITIONS.is_row


def test_a_document_without_a_list_of_objects_is_a_row() -> None:
    values = {"voters": [1, 2], "leader": 1, "secret": "s"}
    assert STATUS.is_row
    table = STATUS.table(values)
    assert table.rows == [values]
    assert [each.key for each in table.heads()] == ["leader", "voters"]


def test_a_document_has_the_order_of_its_declaration() -> None:
    made = STATUS.made([], {"secret": "s", "voters": [1], "leader": None})
    assert json.dumps(made) == (
        '{"leader": null, "voters": [1], "secret": "s", "errors": []}'
    )
    with pytest.raises(AssertionError, match="unknown"):
        STATUS.made([], {"unknown": 1})


def test_rows_of_attributes() -> None:
    row = rows(partition=INTEGER, topic=TEXT)
    assert picked(row, TopicPartition("t", 1)) == {"partition": 1, "topic": "t"}
