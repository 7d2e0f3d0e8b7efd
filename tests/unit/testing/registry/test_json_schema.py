"""JSON Schema of the embedded registry: what is compatible accepts all old values."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import event, given, settings, strategies as st
from jsonschema.validators import validator_for

from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.json_schema import parse

VALUES: list[Any] = [
    *(None, True, 0, 1, 2, 5, 2.5, "", "a", "abc", [], [1], ["a", "a"], [1, 2, 3]),
    *({}, {"a": 1}, {"a": "abc"}, {"b": 1}, {"a": 1, "b": "a"}, {"a": {"b": 2}}),
]


def kinds(reader: Any, writer: Any, **references: Any) -> list[str]:
    texts = {name: json.dumps(each) for name, each in references.items()}
    old = parse(json.dumps(writer), texts)
    return [each.kind for each in parse(json.dumps(reader), texts).differences(old)]


def is_valid(schema: Any, value: Any) -> bool:
    return bool(validator_for(schema)(schema).is_valid(value))


def make(rng: random.Random, depth: int = 2) -> Any:
    """A schema of a few keywords, whose values are among those above."""
    node: dict[str, Any] = {}
    keywords: dict[str, Any] = {
        "type": lambda: rng.choice(
            ["integer", "number", "string", "array", "object", ["null", "integer"]]
        ),
        "enum": lambda: rng.sample([1, 2, "a", None, {"a": 1}], 3),
        "minimum": lambda: rng.randrange(3),
        "exclusiveMaximum": lambda: rng.randrange(2, 6),
        "multipleOf": lambda: rng.choice([1, 2]),
        "minLength": lambda: rng.randrange(3),
        "maxLength": lambda: rng.randrange(4),
        "pattern": lambda: rng.choice(["a", "^a$"]),
        "maxItems": lambda: rng.randrange(4),
        "uniqueItems": lambda: True,
        "required": lambda: rng.sample(["a", "b"], rng.randrange(3)),
        "minProperties": lambda: rng.randrange(3),
    }
    if depth:
        keywords |= {
            "items": lambda: make(rng, depth - 1),
            "properties": lambda: {
                name: make(rng, depth - 1) for name in rng.sample(["a", "b"], 1)
            },
            "additionalProperties": lambda: rng.choice(
                [False, True, make(rng, depth - 1)]
            ),
            "anyOf": lambda: [make(rng, depth - 1) for _ in range(2)],
            "allOf": lambda: [make(rng, depth - 1) for _ in range(2)],
        }
    for name in rng.sample(list(keywords), rng.randrange(4)):
        node[name] = keywords[name]()
    return node


def change(rng: random.Random, node: Any) -> Any:
    new = dict(node)
    for name in list(new):
        if rng.random() < 0.3:
            del new[name]
    other = make(rng, 1)
    for name in other:
        if rng.random() < 0.3:
            new[name] = other[name]
    return new


@settings(max_examples=300)
@given(st.integers(0, 2**64))
def test_what_is_compatible_accepts_each_old_value(seed: int) -> None:
    rng = random.Random(seed)
    writer = make(rng)
    reader = change(rng, writer)
    if found := kinds(reader, writer):
        event(found[0])
        return
    event("compatible")
    for value in VALUES:
        assert not is_valid(writer, value) or is_valid(reader, value), value


@settings(max_examples=100)
@given(st.integers(0, 2**64))
def test_a_schema_accepts_itself(seed: int) -> None:
    schema = make(random.Random(seed), 1)
    # Of several parts one alone is looked at, which may allow more than all together.
    if "allOf" not in schema and "anyOf" not in schema:
        assert kinds(schema, schema) == []


def closed(*required: str, **properties: Any) -> Any:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def opened(*required: str, **properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": list(required)}


INT = {"type": "integer"}
TEXT = {"type": "string"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("reader", "writer", "reasons"),
    [
        (opened("a", a=INT), opened("a", a=INT), []),
        (closed(a=INT, b=TEXT), closed(a=INT), []),
        (closed(a=INT), closed(), []),
        (opened(a=INT), opened(), ["PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (closed(), closed(a=INT), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
        (opened(), closed(a=INT), []),
        (closed("a", a=INT), closed(a=INT), ["REQUIRED_ATTRIBUTE_ADDED"]),
        (closed("a", a={**INT, "default": 1}), closed(), []),
        (closed(a=INT), closed(a=TEXT), ["TYPE_CHANGED"]),
        (closed(a={"type": "number"}), closed(a=INT), []),
        (closed(a=INT), closed(a={"type": "number"}), ["TYPE_CHANGED"]),
        (closed(a={"type": ["null", "integer"]}), closed(a=INT), []),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, []),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, ["ENUM_ARRAY_NARROWED"]),
        ({"oneOf": [INT, TEXT]}, INT, []),
        ({"oneOf": [INT, TEXT]}, {"oneOf": [TEXT]}, []),
        (INT, {"oneOf": [INT, TEXT]}, ["TYPE_CHANGED"]),
        ({"maximum": 5}, {"maximum": 6}, ["MAXIMUM_DECREASED"]),
        ({"minimum": 1}, {"exclusiveMinimum": 1}, []),
        ({"if": INT, "then": {"minimum": 1}}, {}, ["KEYWORD_CHANGED"] * 2),
        (NODE, NODE, []),
        ({**NODE, "required": ["x"]}, NODE, ["REQUIRED_ATTRIBUTE_ADDED"]),
        (False, INT, ["TYPE_NARROWED"]),
        (True, INT, []),
    ],
)
def test_each_rule(reader: Any, writer: Any, reasons: list[str]) -> None:
    assert kinds(reader, writer) == reasons


def test_references_to_other_schemas() -> None:
    def order(line: Any) -> Any:
        return closed(line=line)

    ref = {"$ref": "line.json"}
    assert kinds(order(ref), order(ref), **{"line.json": INT}) == []
    reasons = kinds(order(ref), order(TEXT), **{"line.json": INT})
    assert reasons == ["TYPE_CHANGED"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON"),
        ("7", "an object or a boolean"),
        ('{"type": "text"}', "is not valid under any of the given schemas"),
        ('{"$ref": "#/$defs/none"}', "leads nowhere: #/\\$defs/none"),
        ('{"$ref": "other.json"}', "leads nowhere: other.json"),
        ('{"$ref": "#"}', "lead nowhere"),
    ],
)
def test_what_is_not_a_schema(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse(text, {})
