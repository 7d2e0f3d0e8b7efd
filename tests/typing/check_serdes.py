"""What type checkers tell of serdes; checked by `mypy tests/typing`, never run."""

from dataclasses import dataclass
from datetime import date
from typing import TypedDict, assert_type
from uuid import UUID

from kafkaio.serde import (
    Boolean,
    Bytes,
    Double,
    Float,
    Integer,
    Json,
    Long,
    Serde,
    Short,
    String,
    Topic,
    Uuid,
    nullable,
    of,
)


@dataclass
class Order:
    id: int


@dataclass
class Paid:
    at: date


class Address(TypedDict):
    street: str


def topics() -> None:
    assert_type(Topic("t", value=Json(Order)), Topic[bytes | None, Order])
    assert_type(Topic("t", value=Json(list[Order])), Topic[bytes | None, list[Order]])
    assert_type(Topic("t", value=Json(Address)), Topic[bytes | None, Address])
    assert_type(Topic("t", value=Json()), Topic[bytes | None, object])
    assert_type(Topic("t", key=String(), value=Bytes()), Topic[str, bytes])
    assert_type(Topic("t", key=Long(), value=Double()), Topic[int, float])
    assert_type(Topic("t", key=Short(), value=Float()), Topic[int, float])
    assert_type(Topic("t", key=Uuid(), value=Boolean()), Topic[UUID, bool])
    assert_type(Topic("t", key=Integer()), Topic[int, bytes | None])
    compacted = Topic("t", value=nullable(Json(Order)))
    assert_type(compacted, Topic[bytes | None, Order | None])


def kinds() -> None:
    assert_type(Json(Order), Json[Order])
    assert_type(Json(), Json[object])
    events: Json[Order | Paid] = Json(Order | Paid)
    assert_type(Topic("t", value=events), Topic[bytes | None, Order | Paid])
    orders: Serde[Order] = Json(Order)
    assert_type(nullable(orders), Serde[Order | None])
    Json("Order")  # type: ignore[call-overload]


def dump(order: Order) -> bytes:
    return str(order.id).encode()


def load(data: bytes) -> Order:
    return Order(int(data))


def functions() -> None:
    assert_type(of(dump, load), Serde[Order])
    assert_type(Topic("t", value=of(dump, load)), Topic[bytes | None, Order])
    of(dump, int)  # type: ignore[misc]
