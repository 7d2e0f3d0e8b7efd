"""The annotations of a class that shows its public path."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ForwardRef, get_type_hints

import pytest

from kafkaio._public import public


class Unseen:
    """A name that the module of the public path does not have."""


def moved() -> Any:
    """A class whose annotations nobody has read."""

    @public("kafkaio")
    class Moved:
        plain: int
        known: dict[str, bytes | None]
        own: Unseen
        listed: Mapping[str, Unseen]

    return Moved


def test_the_hints_are_those_of_the_module_where_it_stands() -> None:
    kind = moved()
    assert kind.__module__ == "kafkaio"
    assert get_type_hints(kind) == {
        "plain": int,
        "known": dict[str, bytes | None],
        "own": Unseen,
        "listed": Mapping[str, Unseen],
    }


READ: list[Callable[[dict[str, object]], Mapping[str, object]]] = [
    dict,
    dict.copy,
    lambda read: {**read},
    lambda read: read | {},
    lambda read: dict(read.items()),
    lambda read: dict(zip(read.keys(), read.values(), strict=True)),
    lambda read: {name: read[name] for name in read},
    lambda read: {name: read.get(name) for name in list(read)},
]


@pytest.mark.parametrize("read", READ)
def test_whoever_reads_them_gets_the_module_too(read: Any) -> None:
    found = read(vars(moved())["__annotations__"])
    assert found["plain"] == "int"
    assert found["known"] == "dict[str, bytes | None]"
    own = found["own"]
    assert isinstance(own, ForwardRef)
    assert (own.__forward_arg__, own.__forward_module__) == ("Unseen", __name__)


def test_each_way_alone_makes_the_references() -> None:
    own = vars(moved())["__annotations__"]
    assert isinstance(own["own"], ForwardRef)
    own = vars(moved())["__annotations__"]
    assert isinstance(own.get("own"), ForwardRef)
    assert own.get("missing") is None
    assert isinstance(inspect.get_annotations(moved())["listed"], ForwardRef)


def test_a_class_without_annotations_is_left_alone() -> None:
    @public("kafkaio")
    class Plain:
        pass

    assert Plain.__module__ == "kafkaio"
    assert "__annotations__" not in vars(Plain)
