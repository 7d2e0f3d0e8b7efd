"""Classes of Protobuf, as protoc would generate them."""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
)

_FIELD = descriptor_pb2.FieldDescriptorProto
_POOL = descriptor_pool.Default()
_TYPES = {
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
    "double": _FIELD.TYPE_DOUBLE,
}


def add_message(to: Any, name: str, *fields: str) -> Any:
    """Add a message to a file or message; fields are ``[repeated] type name``."""
    made = to.add(name=name)
    for number, text in enumerate(fields, 1):
        *label, kind, field = text.split()
        added = made.field.add(name=field, number=number)
        added.label = {
            "repeated": _FIELD.LABEL_REPEATED,
            "required": _FIELD.LABEL_REQUIRED,
        }.get("".join(label), _FIELD.LABEL_OPTIONAL)
        if kind in _TYPES:
            added.type = _TYPES[kind]
        else:
            added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{kind}"
    return made


def build(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Put a file into the pool of the process."""
    _POOL.AddSerializedFile(file.SerializeToString())


def classes(*names: str) -> list[Any]:
    """Return the classes of full names."""
    return [
        message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))
        for name in names
    ]


_COMMON = descriptor_pb2.FileDescriptorProto(
    name="kafkaio_test/money.proto", package="shop.common", syntax="proto3"
)
add_message(_COMMON.message_type, "Money", "int64 units", "string currency")
build(_COMMON)

_ADDRESS = descriptor_pb2.FileDescriptorProto(
    name="kafkaio_test/customer.proto", package="shop", syntax="proto3"
)
_ADDRESS.dependency.append(_COMMON.name)
add_message(
    _ADDRESS.message_type, "Customer", "string name", "shop.common.Money credit"
)
build(_ADDRESS)

_ORDERS = descriptor_pb2.FileDescriptorProto(
    name="kafkaio_test/orders.proto", package="shop", syntax="proto3"
)
_ORDERS.dependency.extend([_COMMON.name, _ADDRESS.name, timestamp_pb2.DESCRIPTOR.name])
add_message(_ORDERS.message_type, "Refund", "int64 id")
_ORDER = add_message(
    _ORDERS.message_type,
    "Order",
    "int64 id",
    "string note",
    "repeated shop.Order.Line lines",
    "shop.common.Money total",
    "shop.Customer customer",
    "google.protobuf.Timestamp created",
)
_ENTRY = add_message(_ORDER.nested_type, "TagsEntry", "string key", "string value")
_ENTRY.options.map_entry = True
_ORDER.field.add(
    name="tags",
    number=7,
    label=_FIELD.LABEL_REPEATED,
    type=_FIELD.TYPE_MESSAGE,
    type_name=".shop.Order.TagsEntry",
)
_LINE = add_message(_ORDER.nested_type, "Line", "string sku", "int32 quantity")
add_message(_LINE.nested_type, "Part", "string name")
build(_ORDERS)

_OLD = descriptor_pb2.FileDescriptorProto(
    name="kafkaio_test/old.proto", package="older", syntax="proto2"
)
add_message(_OLD.message_type, "Order", "required int64 id", "int32 unknown")
add_message(_OLD.message_type, "Node", "older.Node next")
build(_OLD)

Refund, Order, Line, Part, Money, OldOrder, Node = classes(
    "shop.Refund",
    "shop.Order",
    "shop.Order.Line",
    "shop.Order.Line.Part",
    "shop.common.Money",
    "older.Order",
    "older.Node",
)

#: The file as Java registers it.
ORDERS_TEXT = """
// A comment with message Fake { }
syntax = "proto3";
package shop;
import "kafkaio_test/money.proto"; /* message Other { */
option java_package = "com.shop; message Nothing {";
message Refund { int64 id = 1; }
message Order {
  int64 id = 1;
  string note = 2 [deprecated = true, (custom) = { message: "no" }];
  repeated Line lines = 3;
  map<string, string> tags = 7;
  enum State { NEW = 0; }
  oneof either { string a = 8; string b = 9; }
  reserved 10, 11;
  message Line { string sku = 1; message Part { string name = 1; } }
  extend google.protobuf.FieldOptions { optional string custom = 1; }
}
service Orders { rpc Get (Refund) returns (Order) { option x = 1; } }
"""
