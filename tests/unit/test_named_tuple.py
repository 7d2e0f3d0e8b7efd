"""Named tuples that are made late are what the standard library makes at once."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import typing
from typing import Any, ClassVar, TypeVar, get_type_hints

import pytest

from kafkaio._generic import Generic
from kafkaio._named_tuple import NamedTuple

T = TypeVar("T")


def shapes(base: Any) -> list[Any]:
    """Classes of every shape that the package has."""

    class Plain(base):
        """Doc."""

        first: int
        second: str

        @property
        def both(self) -> tuple[int, str]:
            return self.first, self.second

    class Defaults(base):
        first: int
        second: str = "x"
        third: dict[str, int] | None = None

        @classmethod
        def of(cls, first: int) -> Defaults:
            return cls(first)

    class One(base):
        first: int

    class Own(base):
        first: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return other is self

        def __hash__(self) -> int:
            return 7

    class Empty(base):
        pass

    class Many(base):
        first: int
        second: str = "x"
        third: dict[str, int] | None = None
        fifth: int = 5
        sixth: int = 6
        seventh: int = 7
        eighth: int = 8

    return [Plain, Defaults, One, Own, Empty, Many]


PAIRS = [
    pytest.param(*pair, id=pair[0].__name__)
    for pair in zip(*map(shapes, (NamedTuple, typing.NamedTuple)), strict=True)
]


def told(call) -> object:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - what it is is compared
        return type(error), str(error)


@pytest.mark.parametrize(("late", "at_once"), PAIRS)
def test_a_class_is_what_the_standard_library_makes(late, at_once) -> None:
    seen = []
    for cls in (late, at_once):
        values = (1, "y", {"z": 3}, 5, 6, 7, 8)[: len(cls._fields)]
        one = cls(*values)
        seen.append(
            [
                *(cls.__name__, cls.__qualname__, cls.__module__, cls.__doc__),
                *(cls._fields, cls._field_defaults, cls.__match_args__),
                *(cls.__bases__, cls.__orig_bases__, type(cls), cls.__slots__),
                *(list(inspect.signature(cls).parameters), get_type_hints(cls)),
                *(cls.__new__.__doc__, cls.__new__.__qualname__.split(".")[-2:]),
                *(repr(one), one == values, told(lambda o=one: hash(o)), len(one)),
                *(one == cls(*values), one._asdict(), one.__getnewargs__()),
                *(
                    tuple(cls._make(values)),
                    tuple(copy.copy(one)),
                    one.__reduce_ex__(4)[1][1:],
                ),
                [getattr(one, name) for name in cls._fields],
                [getattr(cls, name).__doc__ for name in cls._fields],
                told(lambda c=cls: c(1, 2, 3, 4, 5, 6, 7, 8)),
                told(lambda c=cls: c(fourth=4)),
                told(lambda c=cls: c._make((1, 2, 3, 4, 5))),
                told(lambda o=one: o._replace(fourth=4)),
                told(
                    lambda o=one, v=values: tuple(
                        o._replace(**dict(zip(o._fields, v, strict=True)))
                    )
                ),
                told(lambda o=one: setattr(o, "first", 5))[0],
                told(lambda o=one: setattr(o, "other", 5))[0],
            ]
        )
    assert [str(it) for it in seen[0]] == [str(it) for it in seen[1]]
    assert vars(late).keys() == vars(at_once).keys()


def test_an_object_is_read_and_made_in_every_way() -> None:
    plain, defaults, *_ = shapes(NamedTuple)
    assert plain(second="y", first=1).both == (1, "y")
    assert defaults.of(5) == defaults(5, "x", None) == (5, "x", None)
    first, second = plain(1, "y")
    assert (first, second) == (1, "y")
    match plain(1, "y"):
        case plain(1, second):
            assert second == "y"


class Pair(NamedTuple, Generic[T]):
    """A pair."""

    one: T
    other: T
    count: ClassVar[int]  # a field, as in the standard library


def test_it_may_be_generic() -> None:
    assert Pair[int](1, 2, 3) == Pair(1, 2, 3) == (1, 2, 3)  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(Pair(1, 2, 3))) == (1, 2, 3)  # type: ignore[call-arg]
    assert type(pickle.loads(pickle.dumps(Pair(1, 2, 3)))) is Pair  # type: ignore[call-arg]


def test_a_class_can_be_derived_from_before_it_is_used() -> None:
    plain, *_ = shapes(NamedTuple)

    class Child(plain):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def __new__(cls, first: int) -> Child:
            return super().__new__(cls, first, "child")

    assert Child(1).both == (1, "child")
    assert plain(1, "child") == Child(1)


def test_threads_may_use_it_first_at_the_same_time() -> None:
    barrier = threading.Barrier(4)
    made: list[object] = []
    plain, *_ = shapes(NamedTuple)

    def use() -> None:
        barrier.wait()
        made.append(plain(1, "y"))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [(1, "y")] * 4


def test_what_it_cannot_do_it_refuses() -> None:
    with pytest.raises(TypeError, match="define a class"):
        NamedTuple("Name", [("first", int)])
    with pytest.raises(TypeError, match="_generic"):

        class Wrong(NamedTuple, typing.Generic[T]):
            first: T

    with pytest.raises(TypeError, match="without a default"):

        class Order(NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]

    with pytest.raises(ValueError, match="'_first' cannot be"):

        class Hidden(NamedTuple):
            _first: int  # type: ignore[misc]

    with pytest.raises(AttributeError, match="overwrite"):

        class Maker(NamedTuple):
            first: int

            def _make(self) -> None:  # type: ignore[override, misc]
                pass
