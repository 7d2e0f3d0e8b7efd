"""Classes as schemas of Avro, and their instances."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
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
    TypedDict,
    TypeVar,
)
from uuid import UUID

import fastavro
import msgspec
import pydantic
import pytest
from hypothesis import given, strategies as st

from kafkaio.errors import ConfigurationError, SerializationError
from kafkaio.registry import Avro, AvroAs, decimal
from tests.unit.registry.double import MemoryRegistry
from tests.unit.registry.through import through

UTC = UTC
Sku = NewType("Sku", str)
T = TypeVar("T")


class Status(Enum):
    NEW = "new"
    SHIPPED = "shipped"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Line:
    sku: Sku
    quantity: int
    price: Annotated[Decimal, AvroAs(decimal(precision=9, scale=2))] = Decimal("1.50")


@dataclass
class Gift:
    to: str
    lines: list[Line]


@dataclass(frozen=True)
class Order:
    id: UUID
    customer: int
    amount: float
    created: datetime
    lines: list[Line]
    status: Status = Status.NEW
    level: Level | None = None
    note: str | None = None
    paid: bool = False
    raw: bytes = b"\xff"
    day: date = date(2020, 1, 1)
    at: time = time(12, 30)
    kind: Literal["web", "shop"] = "web"
    tags: frozenset[str] = frozenset()
    pair: tuple[int, ...] = ()
    extra: Line | Gift | None = None
    mixed: int | str = 0
    by_name: dict[str, Line] = field(default_factory=dict)
    parent: Order | None = None
    choices: Sequence[Status | None] = ()


ORDER = Order(
    UUID(int=7),
    2**40,
    1.5,
    datetime(2024, 2, 3, 4, 5, 6, 7, tzinfo=UTC),
    [Line(Sku("a"), 1), Line(Sku("b"), 2, Decimal("-3.25"))],
    Status.SHIPPED,
    Level.HIGH,
    "n",
    True,
    b"\0\1",
    date(1969, 1, 1),
    time(1, 2, 3, 4),
    "shop",
    frozenset(("x",)),
    (1, 2),
    Gift("me", [Line(Sku("c"), 3)]),
    "text",
    {"k": Line(Sku("d"), 4)},
    Order(UUID(int=8), 1, 0.0, datetime(2024, 1, 1, tzinfo=UTC), [], choices=[]),
    [Status.NEW, None],
)


def schema_of(kind: type) -> Any:
    serde: Avro[Any] = Avro(kind, MemoryRegistry())
    return json.loads(serde.schema.text)


def test_a_dataclass_comes_back_as_it_was() -> None:
    assert through(Avro(Order, MemoryRegistry()), ORDER) == ORDER


def test_the_schema_of_a_class_is_one_that_fastavro_parses() -> None:
    schema = schema_of(Order)
    fastavro.parse_schema(schema)
    fields = {each["name"]: each for each in schema["fields"]}
    assert fields["id"]["type"] == {"type": "string", "logicalType": "uuid"}
    assert fields["customer"] == {"name": "customer", "type": "long"}
    assert fields["created"]["type"]["logicalType"] == "timestamp-micros"
    assert fields["status"]["default"] == "new"
    assert fields["note"] == {
        "name": "note",
        "type": ["null", "string"],
        "default": None,
    }
    assert fields["level"]["type"][1]["symbols"] == ["LOW", "HIGH"]
    assert fields["raw"]["default"] == "\u00ff"
    assert fields["day"]["default"] == 18262
    assert fields["at"]["default"] == 45_000_000_000
    assert fields["kind"] == {"name": "kind", "type": "string", "default": "web"}
    assert fields["parent"]["type"] == ["null", "Order"]
    assert fields["mixed"]["default"] == 0
    price = fields["lines"]["type"]["items"]["fields"][2]
    assert price["default"] == "\u0000\u0096"


def test_every_default_is_what_an_older_record_is_read_with() -> None:
    registry = MemoryRegistry()
    schema = schema_of(Defaults)
    old = Avro({**schema, "fields": schema["fields"][:1]}, registry)
    new = Avro(Defaults, registry)
    first, second = (through(old, {"id": UUID(int=1)}, reader=new) for _ in range(2))
    assert first == second == Defaults(UUID(int=1))
    first.lines.append(Line(Sku("x"), 1))
    assert second.lines == []


@dataclass(frozen=True)
class Point:
    x: int
    label: str | None = "p"


@dataclass
class Defaults:
    id: UUID
    status: Status = Status.SHIPPED
    level: Level | None = None
    created: datetime = datetime(2020, 1, 2, tzinfo=UTC)
    price: Annotated[Decimal, AvroAs(decimal(precision=9, scale=2))] = Decimal("1.50")
    raw: bytes = b"\xff"
    point: Point = Point(1, "a")
    lines: list[Line] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    mixed: int | str = "text"


def test_a_union_with_a_default_has_its_type_first() -> None:
    @dataclass
    class Mixed:
        count: int | None = 5
        text: int | str | None = "a"

    fields = schema_of(Mixed)["fields"]
    assert fields[0] == {"name": "count", "type": ["long", "null"], "default": 5}
    assert fields[1] == {
        "name": "text",
        "type": ["string", "long", "null"],
        "default": "a",
    }
    serde = Avro(Mixed, MemoryRegistry())
    for value in (Mixed(), Mixed(None, 3), Mixed(1, None)):
        assert through(serde, value) == value


UNIONS = make_dataclass(
    "Unions",
    [
        ("one", Status | int),
        ("two", list[Line] | Status | None),
        ("three", dict[str, Line] | bool),
        ("four", Line | list[Gift] | float),
        ("five", set[str] | None),
        ("six", Status | Line | Gift | bytes, field(default=Status.NEW)),
        ("seven", list[Line | Gift | None], field(default_factory=list)),
        ("eight", dict[str, Status | int], field(default_factory=dict)),
    ],
)
LINE = Line(Sku("a"), 1)
GIFT = Gift("b", [LINE])


@pytest.mark.parametrize(
    "values",
    [
        (Status.NEW, [LINE], {"k": LINE}, LINE, {"x"}, LINE, [LINE, None, GIFT]),
        (5, Status.SHIPPED, True, [GIFT], None, GIFT, [], {"a": Status.NEW, "b": 1}),
        (5, None, False, 1.5, None, b"raw"),
        (Status.SHIPPED, [], {}, [], set(), Status.SHIPPED),
    ],
)
def test_members_of_a_union_come_back_as_they_were(values: Any) -> None:
    serde: Avro[Any] = Avro(UNIONS, MemoryRegistry())
    assert through(serde, UNIONS(*values)) == UNIONS(*values)


@pytest.mark.parametrize(
    "hint",
    [
        Status | str,
        Status | Level,
        Line | dict[str, int],
        TypedDict("One", {"x": int}) | Line,
    ],
)
def test_members_that_cannot_be_told_apart_are_refused(hint: Any) -> None:
    kind = make_dataclass("Made", [("value", hint)])
    with pytest.raises(ConfigurationError, match="cannot be told apart"):
        Avro(kind, MemoryRegistry())


class PLine(pydantic.BaseModel):
    sku: str
    quantity: int = pydantic.Field(ge=0)


class PNode(pydantic.BaseModel):
    name: str
    children: list[PNode] = []


class POrder(pydantic.BaseModel):
    id: UUID
    lines: list[PLine]
    price: Decimal = pydantic.Field(Decimal("2.5"), max_digits=8, decimal_places=2)
    bonus: Annotated[Decimal, pydantic.Field(max_digits=4, decimal_places=1)] | None = (
        None
    )
    status: Status = Status.NEW
    level: Level = Level.LOW
    note: str | None = pydantic.Field(None, alias="theNote")
    tags: set[str] = set()
    root: PNode | None = None
    either: PLine | PNode | None = None
    line: Line | None = None
    secret: str = pydantic.Field("", exclude=True)


def test_a_model_of_pydantic_comes_back_as_it_was() -> None:
    value = POrder(
        id=UUID(int=1),
        lines=[PLine(sku="a", quantity=1)],
        status=Status.SHIPPED,
        theNote="n",
        tags={"t"},
        root=PNode(name="r", children=[PNode(name="c")]),
        either=PNode(name="e"),
        line=Line(Sku("x"), 1),
        bonus=Decimal("1.5"),
    )
    assert through(Avro(POrder, MemoryRegistry()), value) == value
    fields = {each["name"]: each for each in schema_of(POrder)["fields"]}
    assert "theNote" in fields
    assert "secret" not in fields
    assert fields["price"]["type"]["precision"] == 8


def test_what_a_model_of_pydantic_refuses_is_one_clear_error() -> None:
    registry = MemoryRegistry()
    serde = Avro(POrder, registry)
    bad = POrder(id=UUID(int=1), lines=[PLine(sku="a", quantity=1)])
    bad.lines[0].quantity = -1
    with pytest.raises(SerializationError, match="POrder refuses") as caught:
        through(serde, bad)
    assert caught.value.field == "lines[0].quantity"


class MLine(msgspec.Struct):
    sku: str
    quantity: Annotated[int, msgspec.Meta(ge=0)]


class MOrder(msgspec.Struct, rename="camel"):
    order_id: UUID
    lines: list[MLine]
    status: Status = Status.NEW
    level: Level = Level.LOW
    tags: set[str] = msgspec.field(default_factory=set)
    created_at: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    parent: MOrder | None = None


def test_a_struct_of_msgspec_comes_back_as_it_was() -> None:
    value = MOrder(
        UUID(int=1),
        [MLine("a", 1)],
        level=Level.HIGH,
        tags={"x"},
        parent=MOrder(UUID(int=2), []),
    )
    assert through(Avro(MOrder, MemoryRegistry()), value) == value
    assert schema_of(MOrder)["fields"][0]["name"] == "orderId"
    value.lines[0].quantity = -1
    with pytest.raises(SerializationError) as caught:
        through(Avro(MOrder, MemoryRegistry()), value)
    assert caught.value.field == "lines[0].quantity"


class TLine(TypedDict):
    sku: str
    quantity: int


class TOrder(TypedDict):
    id: UUID
    status: Status
    lines: list[TLine]
    note: NotRequired[str]


def test_a_typeddict_comes_back_as_it_was() -> None:
    serde = Avro(TOrder, MemoryRegistry())
    without: TOrder = {
        "id": UUID(int=1),
        "status": Status.NEW,
        "lines": [{"sku": "a", "quantity": 1}],
    }
    for value in (without, {**without, "note": "n"}):
        assert through(serde, value) == value


@dataclass(kw_only=True)
class Keywords:
    a: int
    b: int = 2


@dataclass(init=False)
class OwnInit:
    a: int
    b: int

    def __init__(self, *, a: int, b: int) -> None:
        self.a, self.b = a, b


@dataclass
class Derived:
    a: int
    b: int
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.a + self.b


@pydantic.dataclasses.dataclass
class Checked:
    a: int
    b: int = pydantic.Field(ge=0)
    c: int = pydantic.Field(default=0, exclude=True)


class Holder(msgspec.Struct):
    order: TOrder
    lines: list[TLine]


def test_a_key_that_was_left_out_stays_out_inside_of_other_classes() -> None:
    order: TOrder = {"id": UUID(int=1), "status": Status.NEW, "lines": []}
    value = Holder(order, [{"sku": "a", "quantity": 1}])
    assert through(Avro(Holder, MemoryRegistry()), value) == value


@pydantic.dataclasses.dataclass
class Aliased:
    kind: str = pydantic.Field(alias="class")


def test_an_alias_may_be_a_word_of_python() -> None:
    value = Aliased(**{"class": "a"})
    assert through(Avro(Aliased, MemoryRegistry()), value) == value
    assert schema_of(Aliased)["fields"] == [{"name": "class", "type": "string"}]


@pytest.mark.parametrize("kind", [Keywords, OwnInit, Derived, Checked])
def test_the_constructor_of_the_class_is_called(kind: Any) -> None:
    assert through(Avro(kind, MemoryRegistry()), kind(a=1, b=2)) == kind(a=1, b=2)
    assert [each["name"] for each in schema_of(kind)["fields"]] == ["a", "b"]


def test_what_a_constructor_refuses_is_one_clear_error() -> None:
    registry = MemoryRegistry()
    value = Checked(1, 2)
    value.b = -1
    with pytest.raises(SerializationError, match="Checked refuses"):
        through(Avro(Checked, registry), value)


def test_a_typeddict_that_is_a_dict_already_is_passed_on() -> None:
    serde: Avro[Any] = Avro(TLine, MemoryRegistry())
    codec = serde._format._codec
    assert codec is not None
    assert codec.build is None
    assert codec.extractor(()) is None
    assert through(serde, {"sku": "a", "quantity": 1}) == {"sku": "a", "quantity": 1}


@dataclass
class Box(Generic[T]):
    value: T


@dataclass
class Untyped:
    price: Decimal


_TWIN = make_dataclass("Line", [("x", int)])


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (Untyped, r"Made\.value\.price: .* how many digits a Decimal has"),
        (dict[int, str], r"Made\.value: keys of a map must be str"),
        (Any, r"Made\.value: Any has no type"),
        (list[tuple[int, str]], r"Made\.value\[\]: tuple\[int, str\] has no type"),
        (str | UUID, r"Made\.value: two members of the union are 'string'"),
        (Literal["a", 1], r"Made\.value: the values of a Literal"),
        (Box, r"Made\.value\.value: T has no type"),
        (dict[str, Line | _TWIN], r"two classes are named Line"),
        (Enum("Empty", []), r"Empty has no members"),
        (make_dataclass("größe", [("x", int)]), "not a name that Avro allows"),
    ],
)
def test_what_has_no_type_in_avro_names_the_field(hint: Any, reason: str) -> None:
    kind = make_dataclass("Made", [("value", hint)])
    with pytest.raises(ConfigurationError, match=reason):
        Avro(kind, MemoryRegistry())


def test_what_avro_cannot_name_or_default_names_the_field() -> None:
    with pytest.raises(ConfigurationError, match=r"Made\.größe: "):
        Avro(make_dataclass("Made", [("größe", int)]), MemoryRegistry())
    wrong = make_dataclass("Made", [("count", int, field(default=None))])
    naive = datetime(2024, 1, 1)  # noqa: DTZ001 - which is refused
    at = make_dataclass("Made", [("at", datetime, field(default=naive))])
    with pytest.raises(ConfigurationError, match=r"Made\.at: the default .* not fit"):
        Avro(at, MemoryRegistry())
    with pytest.raises(ConfigurationError, match=r"Made\.count: the default None"):
        Avro(wrong, MemoryRegistry())


def test_what_is_no_class_with_fields_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="dataclass"):
        Avro(int, MemoryRegistry())
    with pytest.raises(ConfigurationError, match="must be a class, or a schema"):
        Avro(7, MemoryRegistry())  # type: ignore[call-overload]

    @dataclass
    class Unresolved:
        line: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigurationError, match="cannot be resolved"):
        Avro(Unresolved, MemoryRegistry())


def test_a_class_can_give_its_own_schema() -> None:
    @dataclass
    class Own:
        name: str
        count: int

        @classmethod
        def __avro_schema__(cls) -> str:
            return json.dumps(
                {
                    "type": "record",
                    "name": "acme.Own",
                    "fields": [
                        {"name": "name", "type": "string"},
                        {"name": "count", "type": "int"},
                    ],
                }
            )

    serde = Avro(Own, MemoryRegistry())
    assert json.loads(serde.schema.text)["name"] == "acme.Own"
    assert through(serde, Own("a", 1)) == Own("a", 1)
    with pytest.raises(SerializationError) as caught:
        through(serde, Own("a", 2**40))
    assert caught.value.field == "count"


def test_a_schema_of_its_own_may_have_what_annotations_do_not() -> None:
    @dataclass
    class Point:
        x: complex
        status: Status
        price: Decimal

        @staticmethod
        def __avro_schema__() -> dict[str, object]:
            fields = {"x": "long", "status": "string"}
            fields["price"] = decimal(precision=5, scale=1)  # type: ignore[assignment]
            parts = [{"name": name, "type": kind} for name, kind in fields.items()]
            return {"type": "record", "name": "Point", "fields": parts}

    value = Point(5, Status.SHIPPED, Decimal("1.5"))
    assert through(Avro(Point, MemoryRegistry()), value) == value


def test_a_field_can_have_a_schema_of_its_own() -> None:
    @dataclass
    class Made:
        small: Annotated[int, AvroAs("int")] = 5
        line: Annotated[Line | None, AvroAs('["null", {"type": "record", "name": "L",'
            ' "fields": [{"name": "sku", "type": "string"}, {"name": "quantity",'
            ' "type": "int"}, {"name": "price", "type": "string", "default": ""}]}]'
        )] = None  # fmt: skip
        hash: Annotated[bytes, AvroAs({"type": "fixed", "name": "H", "size": 2})] = (
            b"ab"
        )

    fields = schema_of(Made)["fields"]
    assert fields[0] == {"name": "small", "type": "int", "default": 5}
    assert fields[2]["default"] == "ab"
    assert through(Avro(Made, MemoryRegistry()), Made()) == Made()
    with pytest.raises(SerializationError) as caught:
        through(Avro(Made, MemoryRegistry()), Made(2**31))
    assert caught.value.field == "small"


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (2, 3), (2, -1)])
def test_a_decimal_has_digits_behind_the_point_among_its_own(
    precision: int, scale: int
) -> None:
    with pytest.raises(ConfigurationError, match="a decimal number of"):
        decimal(precision=precision, scale=scale)


def test_a_typeddict_that_does_not_fit_names_the_field() -> None:
    serde = Avro(TOrder, MemoryRegistry())
    good: Any = {"id": UUID(int=1), "status": Status.NEW, "lines": []}
    for change, field_name in (
        ({"status": "new"}, "status"),
        ({"lines": [{"sku": "a"}]}, "lines[0].quantity"),
        ({"lines": [5]}, "lines[0]"),
        ({"lines": "text"}, "lines"),
        ({"note": 5}, "note"),
    ):
        with pytest.raises(SerializationError) as caught:
            through(serde, {**good, **change})
        assert caught.value.field == field_name
    del good["status"]
    with pytest.raises(SerializationError, match="is missing") as caught:
        through(serde, good)
    assert caught.value.field == "status"


def test_a_namespace_stands_before_the_names_of_records() -> None:
    serde = Avro(Gift, MemoryRegistry(), namespace="acme")
    schema = json.loads(serde.schema.text)
    assert schema["name"] == "acme.Gift"
    assert schema["fields"][1]["type"]["items"]["name"] == "acme.Line"
    value = Gift("x", [Line(Sku("a"), 1)])
    assert through(serde, value) == value


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"customer": "x"}, "customer", "must be an int, not str"),
        ({"customer": 1.5}, "customer", "must be an int, not float"),
        ({"customer": 2**63}, "customer", "out of the range of long"),
        ({"amount": "x"}, "amount", "must be a float"),
        ({"status": "new"}, "status", "must be of the type Status, not str"),
        ({"note": 5}, "note", "must be a str"),
        ({"paid": 1}, "paid", "must be a bool"),
        (
            {"lines": [Line(Sku("a"), 1), Line(Sku("b"), True)]},
            "lines[1].quantity",
            "must be an int",
        ),
        ({"lines": [Line(Sku("a"), 1, Decimal("0.001"))]}, "lines[0].price", "places"),
        ({"lines": [Line(Sku("a"), 1, Decimal(10**9))]}, "lines[0].price", "digits"),
        ({"lines": [None]}, "lines[0]", "must be of the type Line"),
        ({"lines": None}, "lines", "must be of the type list"),
        (
            {"extra": Gift("a", [Line(Sku("a"), "2")])},
            "extra.lines[0].quantity",
            "must be an int",
        ),  # type: ignore[arg-type]
        ({"by_name": {"a b": Line(Sku("a"), "2")}}, "by_name['a b'].quantity", "int"),  # type: ignore[arg-type]
        ({"created": 1.5}, "created", "must be a datetime"),
        ({"id": "no"}, "id", "must be a UUID"),
    ],
)
def test_a_field_that_does_not_fit_is_named(
    change: Mapping[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(SerializationError, match=reason) as caught:
        through(Avro(Order, MemoryRegistry()), replace(ORDER, **change))
    assert caught.value.field == field


def test_an_instance_of_another_class_is_refused() -> None:
    with pytest.raises(SerializationError, match="of the type Order, not Gift"):
        through(Avro(Order, MemoryRegistry()), Gift("a", []))


def test_an_instance_that_contains_itself_is_refused() -> None:
    node = PNode(name="a")
    node.children.append(node)
    with pytest.raises(SerializationError, match="contains itself"):
        through(Avro(PNode, MemoryRegistry()), node)


@given(
    st.lists(
        st.builds(
            Line,
            st.text(st.characters(exclude_categories=["Cs"])),
            st.integers(-(2**63), 2**63 - 1),
            st.decimals(-(10**7) + 1, 10**7 - 1, places=2),
        )
    ),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_instance_comes_back_as_it_was(lines: list[Line], to: str) -> None:
    assert through(_GIFTS, Gift(to, lines)) == Gift(to, lines)


_GIFTS = Avro(Gift, MemoryRegistry())
