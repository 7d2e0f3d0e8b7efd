"""Dataclasses that are made late are what the standard library makes at once."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import sys
import threading
from dataclasses import FrozenInstanceError, field
from typing import ClassVar, Generic, TypeVar

import pytest

import kafkaio
from kafkaio._dataclass import _Unmade, constructor, dataclass, fields_of, replace

T = TypeVar("T")
BOTH = (dataclass, dataclasses.dataclass)


class Slotless(Generic[T]):
    __slots__ = ()


def shapes(decorate) -> list[type]:
    """Classes of every shape that the package has."""

    @decorate(slots=True)
    class Plain:
        """Doc."""

        KIND: ClassVar[int] = 5
        first: int
        second: list[int] = field(default_factory=list)
        hidden: str = field(default="secret", repr=False)
        left_out: int = field(default=0, compare=False)

        def double(self) -> int:
            return 2 * self.first

    @decorate(slots=True, frozen=True)
    class Frozen(Slotless[int]):
        """Doc."""

        first: int
        second: str = "x"

        def __post_init__(self) -> None:
            object.__setattr__(self, "second", self.second.upper())

    @decorate(slots=True, frozen=True)
    class Derived(Frozen):
        """Doc."""

        second: str = "y"
        third: int = 3

    @decorate(slots=True, kw_only=True)
    class Keyword:
        """Doc."""

        second: int = 2
        first: int

    @decorate(slots=True, eq=False)
    class ByIdentity:
        """Doc."""

        first: int

    @decorate(slots=True, frozen=True)
    class Own:
        """Doc."""

        first: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __hash__(self) -> int:
            return 7

    @decorate(slots=True)
    class OwnEquality:
        """Doc."""

        first: int

        def __eq__(self, other: object) -> bool:
            return True

    @decorate(slots=True)
    class Partly:
        """Doc."""

        first: int
        count: int = field(default=0, init=False)
        items: list[int] = field(default_factory=list, init=False)
        second: str = field(default="x", kw_only=True)

    return [Plain, Frozen, Derived, Keyword, ByIdentity, Own, OwnEquality, Partly]


PAIRS = [
    pytest.param(*pair, id=pair[0].__name__)
    for pair in zip(*map(shapes, BOTH), strict=True)
]


def told(call) -> object:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - what it is is compared
        return type(error), str(error)


@pytest.mark.parametrize(("late", "at_once"), PAIRS)
def test_a_class_is_what_the_standard_library_makes(late, at_once) -> None:
    assert isinstance(vars(late)["__init__"], _Unmade)
    seen = []
    for cls in (late, at_once):
        one, same, other = cls(first=1), cls(first=1), cls(first=2)
        seen.append(
            [
                *(str(inspect.signature(cls)), cls.__match_args__, cls.__slots__),
                *(cls.__qualname__, cls.__doc__, cls.__module__, repr(one)[:20]),
                *(one == same, one == other, type(told(lambda o=one: hash(o)))),
                *(one != 5, cls.__hash__ is None, dataclasses.is_dataclass(cls)),
                [(f.name, f.type, f.default) for f in dataclasses.fields(cls)],
                told(lambda c=cls: c()),
                told(lambda c=cls: c(1, 2, 3, 4, 5)),
                told(lambda o=one: setattr(o, "first", 5)),
                told(lambda o=one: delattr(o, "first")),
                told(lambda o=one: o.another)[0],
                repr(dataclasses.replace(other, first=9))[:20],
                repr(replace(other, first=9))[:20],
                told(lambda o=one: replace(o, another=1)),
                dataclasses.asdict(copy.copy(other)),
            ]
        )
    assert seen[0] == seen[1]
    assert str(late.__dataclass_params__) == str(at_once.__dataclass_params__)
    assert vars(late).keys() == vars(at_once).keys()
    assert not [v for v in vars(late).values() if isinstance(v, _Unmade)]


@pytest.mark.parametrize(
    ("use", "made"),
    [
        (lambda cls: cls.__match_args__, {"__match_args__"}),
        (lambda cls: dataclasses.fields(cls), {"__dataclass_fields__"}),
        (lambda cls: repr(object.__new__(cls)), {"__repr__"}),
        (lambda cls: inspect.signature(cls), {"__init__"}),
        (lambda cls: cls(1).first, set()),
        (lambda cls: replace(cls(1), first=2).first, set()),
        (lambda cls: cls(1) == cls(1), set()),
        (lambda cls: [cls(number).first for number in range(20)], {"__init__"}),
        (lambda cls: [cls(1) == cls(2) for _ in range(20)], {"__init__", "__eq__"}),
    ],
)
def test_a_use_makes_what_it_needs(use, made) -> None:
    plain, twin = shapes(dataclass)[0], shapes(dataclasses.dataclass)[0]
    before = {name for name, it in vars(plain).items() if isinstance(it, _Unmade)}
    assert str(told(lambda: use(plain))) == str(told(lambda: use(twin)))
    after = {name for name, it in vars(plain).items() if isinstance(it, _Unmade)}
    assert before - after == made


def test_a_class_with_its_names_first_used_in_any_order() -> None:
    late, at_once = shapes(dataclass)[2], shapes(dataclasses.dataclass)[2]
    assert dataclasses.replace(late(1), third=5) == late(1, "y", 5)
    assert {late(1), late(1)} == {late(1)}
    assert repr(late(1, "q")) == repr(at_once(1, "q"))
    assert pickle.loads(pickle.dumps(kafkaio.NewTopic("t"))) == kafkaio.NewTopic("t")


def test_a_frozen_object_cannot_be_changed_before_its_class_was_used() -> None:
    frozen = shapes(dataclass)[1]
    with pytest.raises(FrozenInstanceError):
        object.__new__(frozen).first = 1


def test_a_class_can_be_derived_from_before_it_is_used() -> None:
    plain, frozen, *_ = shapes(dataclass)

    class Child(plain):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__(1)

    assert Child().double() == 2
    assert isinstance(vars(frozen)["__init__"], _Unmade)
    assert frozen(1) == frozen(1)
    assert hash(frozen(1)) == hash(frozen(1))


@pytest.mark.parametrize(("late", "at_once"), PAIRS)
def test_the_first_calls_are_those_of_the_compiled_methods(late, at_once) -> None:
    ways: list[tuple[tuple[object, ...], dict[str, object]]] = [
        *(((), {}), ((1,), {}), ((), {"first": 1}), ((1,), {"first": 1})),
        *(((1, "x", 3, 4, 5), {}), ((1,), {"other": 1}), ((), {"second": "q"})),
        *(((1, "x"), {}), ((), {"second": "q", "first": 2})),
    ]
    for args, given in ways:
        slow = shapes(dataclass)[[p.values[0] for p in PAIRS].index(late)]
        one = told(lambda c=slow, a=args, g=given: c(*a, **g))
        twin = told(lambda c=at_once, a=args, g=given: c(*a, **g))
        assert repr(one)[:60].replace(repr(slow), "") == repr(twin)[:60].replace(
            repr(at_once), ""
        )
        if isinstance(one, slow):
            assert (one == one, one != one) == (twin == twin, twin != twin)
            assert (one == twin) == (twin == one)
            if late.__name__ != "ByIdentity":
                assert told(lambda o=one: hash(o)) == told(lambda o=twin: hash(o))
            assert [getattr(one, f.name) for f in dataclasses.fields(at_once)] == [
                getattr(twin, f.name) for f in dataclasses.fields(at_once)
            ]


def test_the_fields_of_a_class_are_those_of_the_library() -> None:
    for late, at_once in zip(
        shapes(dataclass), shapes(dataclasses.dataclass), strict=True
    ):
        before = {name for name, it in vars(late).items() if isinstance(it, _Unmade)}
        found = fields_of(late)
        assert before == {n for n, it in vars(late).items() if isinstance(it, _Unmade)}
        assert [
            (f.name, f.type, f.default, f.init, f.kw_only, f.compare) for f in found
        ] == [
            (f.name, f.type, f.default, f.init, f.kw_only, f.compare)
            for f in dataclasses.fields(at_once)
        ]
        assert fields_of(at_once) == dataclasses.fields(at_once)


def test_threads_may_use_it_first_at_the_same_time() -> None:
    barrier = threading.Barrier(4)
    made: list[object] = []

    def use(cls: type) -> None:
        barrier.wait()
        made.append(cls(first=1))

    for cls in shapes(dataclass):
        threads = [threading.Thread(target=use, args=[cls]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
        assert all(type(one) is cls and one.first == 1 for one in made)  # type: ignore[attr-defined]
        made.clear()


def test_what_it_cannot_do_it_refuses() -> None:
    with pytest.raises(TypeError, match="standard library"):
        dataclass(slots=False)
    with pytest.raises(TypeError, match="postponed"):
        dataclass(slots=True)(type("Now", (), {"__annotations__": {"first": int}}))
    annotations = {"first": "InitVar[int]"}
    with pytest.raises(TypeError, match="standard library"):
        dataclass(slots=True)(type("Init", (), {"__annotations__": annotations}))


def test_values_of_the_package_are_pickled_and_copied() -> None:
    for value in (
        kafkaio.TopicPartition("t", 1),
        kafkaio.NewRecord(b"v", key=b"k"),
        kafkaio.OffsetAndMetadata(5),
    ):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_every_class_of_the_package_can_be_made() -> None:
    for module in pkgutil.walk_packages(kafkaio.__path__, "kafkaio."):
        if not module.name.startswith(("kafkaio.testing", "kafkaio._cli")):
            if module.name.endswith(("__main__", "_speedups")):
                continue
            importlib.import_module(module.name)
    found = {
        cls
        for name, loaded in list(sys.modules.items())
        if name.startswith("kafkaio.")
        for cls in vars(loaded).values()
        if isinstance(cls, type)
        and "__dataclass_fields__" in vars(cls)
        and inspect.isfunction(cls.__init__)
    }
    assert len(found) > 400
    for cls in found:
        names = {f.name for f in dataclasses.fields(cls) if f.init}
        assert names == set(inspect.signature(cls).parameters), cls


# Constructors


def test_a_constructor_makes_what_the_class_makes() -> None:
    @dataclass(slots=True, frozen=True)
    class Base:
        first: int
        second: str = "x"

    @dataclass(slots=True, frozen=True)
    class Derived(Base):
        third: tuple[int, ...] = ()
        fourth: int = field(default=4, kw_only=True)

    make = constructor(Derived)
    assert constructor(Derived) is make
    assert make(1) == Derived(1)
    assert make(1, "y", (2,), fourth=3) == Derived(1, "y", (2,), fourth=3)
    made = make(first=1, third=(5,))
    assert made == Derived(1, third=(5,))
    assert repr(made) == repr(Derived(1, third=(5,)))
    with pytest.raises(FrozenInstanceError):
        made.first = 2  # type: ignore[misc]
    for wrong in ((), (1, "y", (), 4)):
        with pytest.raises(TypeError):
            make(*wrong)


@pytest.mark.parametrize("shape", ["post_init", "factory", "not a parameter"])
def test_what_needs_the_class_itself(shape: str) -> None:
    @dataclass(slots=True, frozen=True)
    class Computed:
        first: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "first", self.first + 1)

    @dataclass(slots=True, frozen=True)
    class Made:
        first: list[int] = field(default_factory=list)

    @dataclass(slots=True, frozen=True)
    class Hidden:
        first: int = field(default=1, init=False)

    kinds = {"post_init": Computed, "factory": Made, "not a parameter": Hidden}
    with pytest.raises(TypeError, match=kinds[shape].__name__):
        constructor(kinds[shape])
