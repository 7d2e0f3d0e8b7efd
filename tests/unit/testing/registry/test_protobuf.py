"""Protobuf in the embedded registry: text, descriptors and compatibility."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from google.protobuf import struct_pb2, timestamp_pb2, type_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from kafkaio.testing._registry.errors import InvalidSchema
from kafkaio.testing._registry.protobuf import parse

ORDER = """
// An order.
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
option java_package = "com.shop";

/* What a customer
   has ordered. */
message Order {
  reserved 4, 10 to 12;
  reserved "old";
  string id = 1 [json_name = "ID"];
  repeated Line lines = 2;
  google.protobuf.Timestamp at = 3;
  optional int32 amount = 5;
  map<string, Line.Kind> kinds = 6;
  oneof payment {
    string card = 7;
    bytes token = 8 [deprecated = true];
  }
  message Line {
    enum Kind { option allow_alias = true; KIND_NONE = 0; NONE = 0; BOOK = -1; }
    Kind kind = 1;
    sint64 count = 0x2;
  }
}
service Orders { rpc Watch (stream Order) returns (stream .shop.v1.Order.Line); }
"""


def same(first: str, second: str) -> bool:
    return bool(parse(first, {}).file == parse(second, {}).file)


def test_text_becomes_a_descriptor() -> None:
    file = parse(ORDER, {}).file
    (order,) = file.message_type
    fields = {field.name: field for field in order.field}
    assert fields["lines"].type_name == ".shop.v1.Order.Line"
    assert fields["lines"].label == 3
    assert fields["at"].type_name == ".google.protobuf.Timestamp"
    assert fields["kinds"].type_name == ".shop.v1.Order.KindsEntry"
    assert fields["amount"].proto3_optional
    assert order.oneof_decl[fields["card"].oneof_index].name == "payment"
    assert order.nested_type[1].field[0].type_name == ".shop.v1.Order.Line.Kind"
    assert file.service[0].method[0].server_streaming


def test_a_text_that_was_written_is_read_as_the_same() -> None:
    schema = parse(ORDER, {})
    assert same(ORDER, schema.text(is_normal=False))
    assert same(ORDER, schema.serialized())


def plain(file: Any) -> str:
    """A file without the names in JSON, which protoc writes even if they are usual."""
    return re.sub(r'\n *json_name: ".*"', "", str(file))


@pytest.mark.parametrize("module", [struct_pb2, timestamp_pb2, type_pb2, trace_pb2])
def test_descriptors_of_others_survive_the_way_through_text(module: object) -> None:
    """What protoc makes of a file is what we make of the text that we write of it."""
    descriptor = getattr(module, "DESCRIPTOR")  # noqa: B009 - it has no type
    given = base64.b64encode(descriptor.serialized_pb).decode()
    references = {
        each.name: base64.b64encode(each.serialized_pb).decode()
        for each in (common_pb2.DESCRIPTOR, *descriptor.dependencies)
        if not each.name.startswith("google/")
    }
    first = parse(given, references)
    second = parse(first.text(is_normal=False), references)
    assert plain(second.file) == plain(first.file)


def test_imports_are_references() -> None:
    line = 'syntax = "proto3"; package shop; message Line { int32 count = 1; }'
    order = 'syntax = "proto3"; import "line.proto"; message Order { shop.Line a = 1; }'
    schema = parse(order, {"line.proto": line})
    assert schema.file.message_type[0].field[0].type_name == ".shop.Line"
    with pytest.raises(InvalidSchema, match=r"shop\.Line"):
        parse(order, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('syntax = "proto9";', "proto9"),
        ("message A {", "ends too early"),
        ("message A { int32 a = 1; }", "needs a label"),
        ("message 7 {}", "is not a name"),
        ('syntax = "proto3"; message A { int32 a = b; }', "is not an integer"),
        ('syntax = "proto3"; message A { int32 a = 0; }', "not allowed"),
        ('syntax = "proto3"; message A { B b = 1; }', '"B" is not defined'),
        (
            'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }',
            r"duplicate field number \(1\)|Field number 1",
        ),
        ('syntax = "proto3"; message A { int32 a = 1 [(own) = 1]; }', "of one's own"),
        ('syntax = "proto3"; extend A { int32 a = 1; }', "not understood"),
        ('import "google/protobuf/none.proto";', "does not exist"),
        ("AAAA", "is not understood|ends too early"),
        ("message A {" * 5_000, "too deeply|ends too early"),
    ],
)
def test_what_is_not_a_schema(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse(text, {})


def file(body: str, *others: str) -> str:
    return f'syntax = "proto3"; message M {{ {body} }} {" ".join(others)}'


LINE = "message Line {} message Row {}"


@pytest.mark.parametrize(
    ("reader", "writer", "reasons"),
    [
        (file("int32 a = 1;"), file("int32 a = 1;"), []),
        (file("int32 b = 1;"), file("int32 a = 1;"), []),
        (file(""), file("int32 a = 1;"), []),
        (file("int32 a = 1; string b = 2;"), file("int32 a = 1;"), []),
        (file("int64 a = 1;"), file("int32 a = 1;"), []),
        (file("bytes a = 1;"), file("string a = 1;"), []),
        (file("string a = 1;"), file("int32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (file("sint32 a = 1;"), file("int32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (
            file("repeated int32 a = 1;"),
            file("int32 a = 1;"),
            ["FIELD_NUMERIC_LABEL_CHANGED"],
        ),
        (file("repeated string a = 1;"), file("string a = 1;"), []),
        (file("Line a = 1;", LINE), file("int32 a = 1;", LINE), ["FIELD_KIND_CHANGED"]),
        (
            file("Row a = 1;", LINE),
            file("Line a = 1;", LINE),
            ["FIELD_NAMED_TYPE_CHANGED"],
        ),
        (file(""), file("", LINE), ["MESSAGE_REMOVED"] * 2),
        (file("", LINE), file(""), []),
        (
            file("oneof o { int32 a = 1; int32 b = 2; }"),
            file("int32 a = 1; int32 b = 2;"),
            ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"],
        ),
        (file("oneof o { int32 a = 1; }"), file("int32 a = 1;"), []),
        (
            file("oneof o { int32 a = 1; int32 b = 2; }"),
            file("oneof o { int32 a = 1; } int32 b = 2;"),
            ["FIELD_MOVED_TO_EXISTING_ONEOF"],
        ),
        (
            file("oneof o { int32 a = 1; }"),
            file("oneof o { int32 a = 1; int32 b = 2; }"),
            ["ONEOF_FIELD_REMOVED"],
        ),
        (
            "message M { required int32 a = 1; }",
            "message M {}",
            ["REQUIRED_FIELD_ADDED"],
        ),
        (
            "message M {}",
            "message M { required int32 a = 1; }",
            ["REQUIRED_FIELD_REMOVED"],
        ),
    ],
)
def test_each_rule(reader: str, writer: str, reasons: list[str]) -> None:
    found = parse(reader, {}).differences(parse(writer, {}))
    assert [each.kind for each in found] == reasons
