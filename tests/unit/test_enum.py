"""Enums that are defined quickly are what the standard library makes."""

from __future__ import annotations

import copy
import enum
import inspect
import pickle
from enum import auto
from typing import Any

import pytest

from kafkaio import _enum


def shapes(plain: Any, numbers: Any) -> list[Any]:
    """Classes of every shape that the package has."""

    class Words(plain):
        """Doc."""

        ONE = "one"  #: the first
        TWO = "two"
        OTHER = "one"

        @property
        def upper(self) -> str:
            return self.value.upper()

        @classmethod
        def of(cls, text: str) -> Any:
            return cls(text)

        def __str__(self) -> str:
            return f"<{self.value}>"

    class Counted(plain):
        FIRST = auto()
        SECOND = auto()

    class Single(plain):
        ONLY = None

    class Codes(numbers):
        """Codes."""

        UNKNOWN = -1
        NONE = 0
        MORE = 7

        @classmethod
        def _missing_(cls, value: object) -> Any:
            return cls.UNKNOWN if isinstance(value, int) else None

    return [Words, Counted, Single, Codes]


PAIRS = [
    pytest.param(*pair, id=pair[0].__name__)
    for pair in zip(
        shapes(_enum.Enum, _enum.IntEnum), shapes(enum.Enum, enum.IntEnum), strict=True
    )
]


def told(call: Any) -> object:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - what it is is compared
        return type(error), str(error)


@pytest.mark.parametrize(("quick", "plain"), PAIRS)
def test_a_class_is_what_the_standard_library_makes(quick: Any, plain: Any) -> None:
    seen = []
    for cls in (quick, plain):
        one = next(iter(cls))
        seen.append(
            [
                *(cls.__name__, cls.__qualname__, cls.__module__, cls.__doc__),
                *(cls.__bases__, type(cls), cls._member_names_, len(cls)),
                *(list(cls.__members__), str(inspect.signature(cls))),
                [(it.name, it.value, str(it), repr(it), f"{it}") for it in cls],
                [(it in cls, cls(it.value) is it, cls[it.name] is it) for it in cls],
                *(copy.copy(one) is one, copy.deepcopy(one) is one),
                *(one == one.value, hash(one), one.__reduce_ex__(4)[1]),
                *(told(lambda c=cls: c(99)), told(lambda c=cls: c("none"))),
                *(told(lambda c=cls: c["none"]), told(lambda o=one: o.none)),
                told(lambda o=one: setattr(o, "name", "x")),
                told(lambda c=cls: delattr(c, c._member_names_[0])),
                told(lambda c=cls: type("Derived", (c,), {})),
            ]
        )
    assert [str(it) for it in seen[0]] == [str(it) for it in seen[1]]
    added = vars(quick).keys() ^ vars(plain).keys()
    assert not {name for name in added if not name.startswith("_")}


class Stage(_enum.Enum):
    """An enum of a module."""

    OPEN = auto()
    CLOSED = auto()


def test_members_are_pickled_matched_and_ordered() -> None:
    assert pickle.loads(pickle.dumps(Stage.OPEN)) is Stage.OPEN
    assert list(Stage) == [Stage.OPEN, Stage.CLOSED]
    match Stage.CLOSED:
        case Stage.OPEN:
            pytest.fail("the wrong member")
        case Stage.CLOSED:
            pass
    words, _, _, codes = shapes(_enum.Enum, _enum.IntEnum)
    assert words.of("two").upper == "TWO"
    assert words.OTHER is words.ONE
    assert codes(5) is codes.UNKNOWN
    assert codes.NONE < codes.MORE == 7
