"""What a class with a public path shows, and how the module of a name is loaded."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef, get_type_hints

import pytest

from kafkaio._public import lazy, public


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


@pytest.fixture
def load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], object]]:
    """Load a name of a package, lazily, from a module with this text."""
    (tmp_path / "lazily.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    import_module("lazily")
    was_enabled = gc.isenabled()
    gc.enable()

    def write_and_load(text: str) -> object:
        (tmp_path / "lazily_home.py").write_text(text)
        _, load_name, _ = lazy("lazily", {"lazily_home": ("found",)})
        return load_name("found")

    yield write_and_load
    for name in ("lazily", "lazily_home"):
        sys.modules.pop(name, None)
    if not was_enabled:
        gc.disable()


IS_COLLECTING = "import gc\nfound = gc.isenabled()\n"


def test_nothing_is_collected_while_a_module_loads(
    load: Callable[[str], object],
) -> None:
    assert load(IS_COLLECTING) is False
    assert gc.isenabled()


def test_what_a_module_made_is_old_when_it_is_there(
    load: Callable[[str], object],
) -> None:
    gc.unfreeze()  # what the tests of this folder have frozen
    try:
        load("found = [[] for _ in range(10_000)]")
        assert len(gc.get_objects(generation=0)) < 10_000
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


def test_the_collector_stays_as_the_program_wants_it(
    load: Callable[[str], object],
) -> None:
    gc.disable()
    try:
        assert load(IS_COLLECTING) is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_enabled_after_an_import_that_raises(
    load: Callable[[str], object],
) -> None:
    with pytest.raises(ZeroDivisionError):
        load("1 / 0")
    assert gc.isenabled()


def test_what_the_program_has_frozen_stays_frozen(
    load: Callable[[str], object],
) -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    load(IS_COLLECTING)
    assert gc.get_freeze_count() > before / 2  # some of them may have been freed
    assert gc.isenabled()
