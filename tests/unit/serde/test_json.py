"""`Json`: values of classes as JSON, and what does not fit."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from hypothesis import given, settings, strategies as st

from kafkaio.errors import ArgumentTypeError, SerializationError
from kafkaio.serde import DeserializationContext, Json, SerializationContext

WRITING = SerializationContext("orders", [], is_key=False)
READING = DeserializationContext("orders", [], is_key=False)
T = TypeVar("T")
Sku = NewType("Sku", str)


def written(serde: Json[Any], value: object) -> str:
    return serde.serialize(value, WRITING).decode()


def read(serde: Json[T], text: str) -> T:
    return serde.deserialize(text.encode(), READING)


class Currency(Enum):
    EUR = "EUR"
    CHF = "CHF"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


@dataclass
class Line:
    sku: Sku
    amount: Decimal
    count: int = 1


@dataclass(frozen=True, slots=True)
class Order:
    id: UUID
    currency: Currency
    placed: datetime
    day: date
    at: time
    paid: bool
    share: float
    lines: list[Line]
    tags: frozenset[str]
    level: Level
    kind: Literal["order", 7]
    address: Address
    photo: bytes
    pair: tuple[int, str]
    stock: dict[str, Line]
    by_number: Mapping[int, Sequence[int]]
    note: str | None
    anything: Any
    maybe: Optional[Line] = None  # noqa: UP045 - both ways of writing it
    either: Union[int, str, Line] = 0  # noqa: UP007 - likewise
    marked: Annotated[int, "a mark"] = 5


ORDER = Order(
    UUID(int=7),
    Currency.EUR,
    datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
    date(2026, 1, 2),
    time(3, 4),
    True,
    0.5,
    [Line(Sku("a"), Decimal("9.90")), Line(Sku("b"), Decimal(3), 2)],
    frozenset({"b", "a"}),
    Level.HIGH,
    "order",
    {"street": "Weg 1"},
    b"\x00\xff",
    (1, "x"),
    {"a": Line(Sku("c"), Decimal("0.1"))},
    {-3: [1, 2]},
    None,
    {"x": [1, None, "ü"]},
)


def test_a_dataclass_is_written_compactly_and_in_order() -> None:
    text = written(Json(Order), ORDER)
    assert text == (
        '{"id":"00000000-0000-0000-0000-000000000007","currency":"EUR",'
        '"placed":"2026-01-02T03:04:05.000678+00:00","day":"2026-01-02",'
        '"at":"03:04:00","paid":true,"share":0.5,'
        '"lines":[{"sku":"a","amount":"9.90","count":1},'
        '{"sku":"b","amount":"3","count":2}],"tags":["a","b"],"level":2,'
        '"kind":"order","address":{"street":"Weg 1"},"photo":"AP8=","pair":[1,"x"],'
        '"stock":{"a":{"sku":"c","amount":"0.1","count":1}},"by_number":{"-3":[1,2]},'
        '"note":null,"anything":{"x":[1,null,"ü"]},"maybe":null,"either":0,"marked":5}'
    )
    assert read(Json(Order), text) == ORDER


amounts = st.decimals(allow_nan=False, allow_infinity=False)
lines = st.builds(Line, st.text(), amounts, st.integers())
trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
orders = st.builds(
    Order,
    st.uuids(),
    st.sampled_from(Currency),
    st.datetimes(timezones=st.none() | st.just(UTC)),
    st.dates(),
    st.times(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(lines),
    st.frozensets(st.text()),
    st.sampled_from(Level),
    st.sampled_from(["order", 7]),
    st.fixed_dictionaries({"street": st.text()}, optional={"zip": st.integers()}),
    st.binary(),
    st.tuples(st.integers(), st.text()),
    st.dictionaries(st.text(), lines),
    st.dictionaries(st.integers(), st.lists(st.integers())),
    st.none() | st.text(),
    trees,
    st.none() | lines,
    st.integers() | st.text() | lines,
)


@settings(max_examples=40)  # an order has all types, and takes long to make
@given(order=orders)
def test_what_is_written_is_read(order: Order) -> None:
    serde = Json(Order)
    data = serde.serialize(order, WRITING)
    assert serde.deserialize(data, READING) == order
    assert serde.serialize(order, WRITING) == data


@settings(max_examples=40)
@given(
    order=orders,
    name=st.sampled_from([each.name for each in fields(Order)]),
    other=trees,
)
def test_a_wrong_field_is_named_or_fits(order: Order, name: str, other: object) -> None:
    serde = Json(Order)
    tree = json.loads(serde.serialize(order, WRITING)) | {name: other}
    try:
        value = serde.deserialize(json.dumps(tree).encode(), READING)
    except SerializationError as error:
        fault = error
    else:
        again = serde.deserialize(serde.serialize(value, WRITING), READING)
        assert again == value
        return
    assert fault.field == name or fault.field.startswith((f"{name}.", f"{name}["))
    assert fault.field in str(fault)


@given(data=st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for serde in (Json(Order), Json()):
        with suppress(SerializationError):
            value = serde.deserialize(data, READING)
            assert serde.deserialize(serde.serialize(value, WRITING), READING) == value


@given(value=trees.filter(lambda tree: tree is not None))
def test_without_a_class_any_value_is_written_and_read(value: object) -> None:
    serde = Json()
    assert serde.deserialize(serde.serialize(value, WRITING), READING) == value


@given(value=trees, data=st.data())
def test_equal_values_are_written_alike(value: Any, data: st.DataObject) -> None:
    def mixed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {
                name: mixed(tree[name])
                for name in data.draw(st.permutations(list(tree)))
            }
        return [mixed(each) for each in tree] if isinstance(tree, list) else tree

    other = mixed(value)
    assert written(Json(), value) == written(Json(), other)
    for kind in (list[Any], Loose):
        one, two = (
            ([value], [other])
            if kind is not Loose
            else (Loose([], rest=value), Loose([], rest=other))
        )
        assert written(Json(kind), one) == written(Json(kind), two)
    assert written(Json(dict[str, int]), {"b": 1, "a": 2}) == '{"a":2,"b":1}'


@pytest.mark.parametrize(
    ("changed", "place", "reason"),
    [
        ({"paid": 1}, "paid", "must be a boolean, not an integer"),
        ({"level": True}, "level", "must be a value of Level, not a boolean"),
        ({"level": 3}, "level", "must be a value of Level"),
        ({"currency": "USD"}, "currency", "must be a value of Currency"),
        ({"lines": [{"sku": "a"}]}, "lines[0].amount", "is missing"),
        ({"lines": [{"sku": "a", "amount": "x"}]}, "lines[0].amount", "decimal number"),
        ({"lines": {}}, "lines", "must be an array, not an object"),
        ({"stock": {"a b": 1}}, "stock['a b']", "must be an object"),
        ({"by_number": {"x": []}}, "by_number.x", "must be an integer"),
        ({"pair": [1]}, "pair", "must be an array of 2"),
        ({"pair": [1, 2]}, "pair[1]", "must be a string"),
        ({"photo": "%"}, "photo", "must be base64"),
        ({"placed": "now"}, "placed", "ISO 8601"),
        ({"id": "7"}, "id", "must be a UUID"),
        ({"kind": "7"}, "kind", "must be 'order' or 7"),
        ({"either": True}, "either", "fits none of"),
        ({"address": {}}, "address.street", "is missing"),
        ({"share": "0.5"}, "share", "must be a number"),
    ],
)
def test_the_field_that_does_not_fit_is_named(
    changed: dict[str, object], place: str, reason: str
) -> None:
    tree = json.loads(written(Json(Order), ORDER)) | changed
    with pytest.raises(SerializationError) as caught:
        read(Json(Order), json.dumps(tree))
    assert caught.value.field == place
    assert f"{place}: " in str(caught.value)
    assert reason in str(caught.value)


@dataclass
class Loose:
    """Nothing checks what its fields are given."""

    lines: list[Line]
    day: date | None = None
    rest: Any = None


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        (Loose([Line(Sku("a"), 5)]), "lines[0].amount", "not an integer"),  # type: ignore[arg-type]
        (Loose([Line(Sku("a"), Decimal("NaN"))]), "lines[0].amount", "finite"),
        (Loose([None]), "lines[0]", "must be Line, not null"),  # type: ignore[list-item]
        (Loose(5), "lines", "must be a list"),  # type: ignore[arg-type]
        (Loose([], datetime(2026, 1, 1, tzinfo=UTC)), "day", "must be a date"),
        (Loose([], rest={"a": [math.nan]}), "rest.a[0]", "NaN"),
        (Loose([], rest={"a": object()}), "rest.a", "type object"),
        (Loose([], rest=["\ud800"]), "rest[0]", "surrogate"),
        (Loose([], rest={b"a": 1}), "rest", "key of the type bytes"),
    ],
)
def test_nothing_is_written_that_does_not_fit(
    value: Loose, place: str, reason: str
) -> None:
    with pytest.raises(SerializationError) as caught:
        written(Json(Loose), value)
    assert caught.value.field == place
    assert reason in str(caught.value)


def test_another_class_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"Json\(Line\) does not write dict"):
        written(Json(Line), {"sku": "a"})


def test_what_a_class_does_not_have_is_ignored_and_defaults_are_kept() -> None:
    line = read(Json(Line), '{"sku":"a","amount":1,"new":[]}')
    assert line == Line(Sku("a"), Decimal(1), 1)


def test_a_decimal_keeps_every_digit_of_a_number() -> None:
    line = read(Json(Line), '{"sku":"a","amount":12345678901234567.1234567890}')
    assert str(line.amount) == "12345678901234567.1234567890"


def test_other_numbers_beside_a_decimal_are_floats() -> None:
    loose = read(Json(Loose), '{"lines":[],"rest":[1.5,{"a":2.5}]}')
    assert loose.rest == [1.5, {"a": 2.5}]
    assert {type(loose.rest[0]), type(loose.rest[1]["a"])} == {float}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement type is new")
def test_an_alias_that_refers_to_itself_is_refused() -> None:
    names: dict[str, Any] = {}
    exec("type Tree = list[Tree]\ntype Ints = list[int]", names)
    with pytest.raises(ArgumentTypeError, match="refers to itself"):
        Json(names["Tree"])
    assert read(Json(names["Ints"]), "[1]") == [1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":NaN}', "NaN"),
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ("\ufeff1", "is not JSON"),
    ],
)
def test_text_that_is_not_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason):
        read(Json(), text)
    with pytest.raises(SerializationError, match="is not UTF-8"):
        Json().deserialize(b'"\xff"', READING)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(SerializationError, match="contains itself"):
        written(Json(), loop)


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


def test_a_class_may_contain_itself() -> None:
    tree = Node("a", [Node("b", [Node("c")])], Node("d"))
    assert read(Json(Node), written(Json(Node), tree)) == tree
    with pytest.raises(SerializationError) as caught:
        read(Json(Node), '{"name":"a","children":[{"name":"b","children":[{}]}]}')
    assert caught.value.field == "children[0].children[0].name"
    tree.parent = tree
    with pytest.raises(SerializationError, match="contains itself"):
        written(Json(Node), tree)


@dataclass
class Page(Generic[T]):
    items: list[T]
    last: T | None = None


def test_a_generic_class_has_its_types() -> None:
    page = Page([Line(Sku("a"), Decimal(1))])
    assert read(Json(Page[Line]), written(Json(Page[Line]), page)) == page
    with pytest.raises(SerializationError, match=r"items\[0\].sku"):
        read(Json(Page[Line]), '{"items":[{}]}')


@dataclass
class Placed:
    type: Literal["placed"]
    amount: int


@dataclass
class Paid:
    type: Literal["paid"]
    at: date


def test_a_union_of_classes_is_told_apart_by_a_literal() -> None:
    events: Json[Placed | Paid] = Json(Placed | Paid)
    for event in (Placed("placed", 5), Paid("paid", date(2026, 1, 2))):
        assert read(events, written(events, event)) == event
    with pytest.raises(SerializationError) as caught:
        read(events, '{"type":"paid","at":5}')
    assert caught.value.field == "at"
    with pytest.raises(SerializationError, match="fits none of"):
        read(events, '{"type":"lost"}')


def test_a_union_that_json_does_not_show_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="which of Line and Node"):
        Json(Line | Node)
    with pytest.raises(ArgumentTypeError, match="which of str and datetime"):
        Json(list[str | datetime])


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int | float, 1, "1"),
        (float | int, 1.5, "1.5"),
        (Currency | int, Currency.EUR, '"EUR"'),
        (Currency | str, Currency.EUR, '"EUR"'),
        (Currency | str, "other", '"other"'),
        (int | bool, True, "true"),
        (bool | int, 1, "1"),
        (list[int] | int | None, [1], "[1]"),
    ],
)
def test_members_of_a_union_keep_their_types(kind: Any, value: Any, text: str) -> None:
    assert written(Json(kind), value) == text
    found = read(Json(kind), text)
    assert found == value
    assert type(found) is type(value)


@dataclass
class Checked:
    amount: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError("the amount is negative")
        self.double = 2 * self.amount


def test_what_a_class_refuses_does_not_fit() -> None:
    assert written(Json(Checked), Checked(2)) == '{"amount":2,"double":4}'
    assert read(Json(Checked), '{"amount":2,"double":5}') == Checked(2)
    with pytest.raises(SerializationError, match="the amount is negative") as caught:
        read(Json(list[Checked]), '[{"amount":1},{"amount":-1}]')
    assert caught.value.field == "[1]"


@pytest.mark.parametrize(
    "kind", [complex, list[complex], Path := type("Path", (), {}), dict[float, int]]
)
def test_a_type_without_a_form_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(ArgumentTypeError):
        Json(kind)


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    @dataclass
    class Inner:
        other: Unknown  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ArgumentTypeError, match="Unknown"):
        Json(Inner)


class Item(msgspec.Struct, rename="camel"):
    item_id: str
    amount: Decimal


class Basket(msgspec.Struct):
    items: list[Item]
    note: str | None = None


def test_structs_of_msgspec_are_written_by_msgspec() -> None:
    basket = Basket([Item("a", Decimal("9.90"))])
    text = '{"items":[{"itemId":"a","amount":"9.90"}],"note":null}'
    assert written(Json(Basket), basket) == text
    assert read(Json(Basket), text) == basket
    with pytest.raises(SerializationError) as caught:
        read(Json(Basket), '{"items":[{"itemId":5,"amount":"1"}]}')
    assert caught.value.field == "items[0].itemId"
    with pytest.raises(SerializationError) as caught:
        read(Json(Basket), '{"items":[')
    assert not caught.value.field
    with pytest.raises(SerializationError, match="does not write Item"):
        written(Json(Basket), basket.items[0])


class Customer(pydantic.BaseModel):
    id: int
    given_name: str = pydantic.Field(alias="givenName")
    scores: list[int] = []


@pydantic.dataclasses.dataclass
class Visit:
    customer: Customer


def test_models_of_pydantic_are_written_by_pydantic() -> None:
    customer = Customer(id=1, givenName="Zoë")
    text = '{"id":1,"givenName":"Zoë","scores":[]}'
    assert written(Json(Customer), customer) == text
    assert read(Json(Customer), text) == customer
    assert read(Json(list[Customer]), f"[{text}]") == [customer]
    visit = Visit(customer)
    assert read(Json(Visit), written(Json(Visit), visit)) == visit
    with pytest.raises(SerializationError) as caught:
        read(Json(Visit), '{"customer":{"id":1,"givenName":"x","scores":[1,"secret"]}}')
    assert caught.value.field == "customer.scores[1]"
    assert "secret" not in str(caught.value)


def test_a_model_with_a_wrong_field_is_not_written() -> None:
    customer = Customer(id=1, givenName="a")
    customer.id = "one"  # type: ignore[assignment]
    with pytest.raises(SerializationError):
        written(Json(Customer), customer)


@dataclass
class Mixed:
    customer: Customer
    item: Item


def test_a_dataclass_may_hold_classes_of_both_libraries() -> None:
    mixed = Mixed(Customer(id=1, givenName="a"), Item("i", Decimal(1)))
    assert read(Json(Mixed), written(Json(Mixed), mixed)) == mixed
    with pytest.raises(SerializationError) as caught:
        read(Json(Mixed), '{"customer":{"id":1},"item":{}}')
    assert caught.value.field == "customer.givenName"
    with pytest.raises(ArgumentTypeError, match="neither library"):
        Json(Customer | Item)


def test_a_serde_is_pickled_by_its_class() -> None:
    serde = pickle.loads(pickle.dumps(Json(Checked)))
    assert serde.deserialize(b'{"amount":1}', READING) == Checked(1)


def test_a_serde_is_shown_without_its_values() -> None:
    assert repr(Json()) == "Json()"
    assert repr(Json(Line)) == "Json(Line)"
    assert repr(Json(Customer)) == "Json(Customer)"
    assert repr(Json(Address)) == "Json(Address)"
    assert repr(Json(Placed | Paid)).endswith("Paid)")
    assert repr(Json(list[int])) == "Json(list[int])"


def test_no_library_is_loaded_for_dataclasses() -> None:
    program = """
import sys
from dataclasses import dataclass
from kafkaio.serde import Json

assert "json" not in sys.modules

@dataclass
class Order:
    id: int

Json(Order)
assert not {"pydantic", "msgspec", "httpx", "fastavro"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
