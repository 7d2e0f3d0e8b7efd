"""One order in each language of schemas, for the exchange with other clients."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

__all__ = [
    "AVRO",
    "JSON",
    "Line",
    "Order",
    "OrderMessage",
    "orders",
]


@dataclass
class Line:
    """So many of one thing."""

    sku: str
    count: int


@dataclass
class Order:
    """What a customer has ordered."""

    id: int
    total: float
    customer: str | None = None
    lines: list[Line] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


#: The same for those who write schemas by hand.
AVRO: Final = """{
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": "double"},
        {"name": "customer", "type": ["null", "string"], "default": null},
        {"name": "lines", "default": [], "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [
                {"name": "sku", "type": "string"}, {"name": "count", "type": "long"}
            ]
        }}}
    ]
}"""
JSON: Final = """{
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order", "type": "object", "additionalProperties": false,
    "required": ["id", "total"],
    "properties": {
        "id": {"type": "integer"},
        "total": {"type": "number"},
        "customer": {"type": ["string", "null"]},
        "lines": {"type": "array", "items": {"type": "object", "properties": {
            "sku": {"type": "string"}, "count": {"type": "integer"}
        }}}
    }
}"""


def orders(count: int = 5) -> list[Order]:
    """Return orders that are all different."""
    return [
        Order(
            number,
            number + 0.5,
            None if number % 2 else f"customer-{number}",
            [Line(f"sku-{each}", each) for each in range(number)],
        )
        for number in range(count)
    ]


# ---- Protobuf ------------------------------------------------------------------------

_LINE: Final = "shop/line.proto"
_ORDER: Final = "shop/order.proto"


def _line_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name=_LINE, package="shop", syntax="proto3")
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    line.field.add(name="count", number=2, type="TYPE_INT64", label="LABEL_OPTIONAL")
    return file


def _order_file() -> FileDescriptorProto:
    """A file in which the order is the second message inside of the second one."""
    file = FileDescriptorProto(name=_ORDER, package="shop", syntax="proto3")
    file.dependency.append(_LINE)
    file.message_type.add(name="Other")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="First")
    order = outer.nested_type.add(name="Order")
    kinds = {"id": "TYPE_INT64", "total": "TYPE_DOUBLE", "customer": "TYPE_STRING"}
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        order.field.add(name=name, number=number, type=kind, label="LABEL_OPTIONAL")
    order.field.add(
        name="lines",
        number=4,
        type="TYPE_MESSAGE",
        label="LABEL_REPEATED",
        type_name=".shop.Line",
    )
    # It holds itself: recursive schemas are usual.
    order.field.add(
        name="parts",
        number=5,
        type="TYPE_MESSAGE",
        label="LABEL_REPEATED",
        type_name=".shop.Outer.Order",
    )
    return file


def _message_class() -> Any:
    pool = DescriptorPool()
    for file in (_line_file(), _order_file()):
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.Outer.Order"))


#: The class that ``protoc`` would generate.
OrderMessage: Final = _message_class()


def as_message(order: Order) -> Any:
    """Return an order as a message, with a part that is an order."""
    message = OrderMessage(id=order.id, total=order.total, customer=order.customer)
    for line in order.lines:
        message.lines.add(sku=line.sku, count=line.count)
    message.parts.add(id=order.id + 1)
    return message
