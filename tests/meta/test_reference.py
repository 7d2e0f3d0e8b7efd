"""The reference: every public name has one place there, and every signature its types.

What the pages show is checked by the build (`nox -s docs`): a signature without types,
a reference that leads nowhere and a page that no other lists are errors there. These
tests need no Sphinx: they compare the pages with the package.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import kafkaio

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
OVERVIEW = (FOLDER / "index.md").read_text(encoding="utf-8")
REFERENCE = "".join(
    file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.md"))
)
#: What describes a name, and with which options.
DIRECTIVE = re.compile(
    r"^\.\. (?:auto|py:)(\w+):: (kafkaio[\w.]*)\n((?: +:.*\n)*)", re.MULTILINE
)
SHOWN = {name: options for _, name, options in DIRECTIVE.findall(REFERENCE)}
#: A package with pages of Kafka's own, and what is described by its other path.
ELSEWHERE = {
    *("kafkaio.messages", "kafkaio.security.Token"),
    # Of `kafkaio.aiokafka.errors`, whose names have a page.
    *("kafkaio.aiokafka.ConsumerStoppedError", "kafkaio.aiokafka.IllegalOperation"),
}
PACKAGES = [
    *("kafkaio", "kafkaio.admin", "kafkaio.aiokafka", "kafkaio.aiokafka.admin"),
    *("kafkaio.arrow", "kafkaio.errors"),
    *("kafkaio.registry", "kafkaio.security", "kafkaio.serde", "kafkaio.spark"),
    "kafkaio.testing",
    *("kafkaio.testing.kafka", "kafkaio.types"),
]
NAMES = [
    f"{package}.{name}"
    for package in PACKAGES
    for name in importlib.import_module(package).__all__
    if package == "kafkaio" or name not in kafkaio.__all__
]
#: Those that can be loaded here: PySpark and pyarrow are not there in every session.
LOADED = [
    name
    for name in NAMES
    if not name.startswith("kafkaio.spark.") or find_spec("pyspark")
]


def test_every_public_name_is_in_the_reference() -> None:
    names = {*NAMES} - ELSEWHERE
    assert names <= SHOWN.keys()
    listed = {*re.findall(r"^   ~(.+)$|:: (.+)$", OVERVIEW, re.MULTILINE)}
    described = {name for pair in listed for name in pair}
    assert {name for name in names if not name.startswith("kafkaio.__")} <= described


def test_every_exception_of_aiokafka_is_in_the_reference() -> None:
    errors = importlib.import_module("kafkaio.aiokafka.errors")
    # Some classes have an earlier name, too.
    found = (getattr(errors, name) for name in errors.__all__)
    names = {each.__name__ for each in found if inspect.isclass(each)}
    assert len(names) > 80
    assert {f"kafkaio.aiokafka.errors.{name}" for name in names} <= SHOWN.keys()


def test_a_name_has_one_place() -> None:
    places = Counter(
        name for kind, name, _ in DIRECTIVE.findall(REFERENCE) if kind != "module"
    )
    assert [name for name, count in places.items() if count > 1] == []


def test_the_reference_shows_public_paths() -> None:
    assert not [name for name in SHOWN if re.search(r"\._(?!_)", name)]


@pytest.mark.parametrize("name", ["Admin", "Client", "Producer", "Consumer", "Lane"])
def test_methods_of_private_bases_are_shown(name: str) -> None:
    public = getattr(kafkaio, name)
    inherited = {
        attribute
        for base in public.__mro__[1:-1]
        for attribute in vars(base)
        if not attribute.startswith("_") and attribute not in vars(public)
    }
    assert not inherited or ":inherited-members:" in SHOWN[f"kafkaio.{name}"]


def functions(value: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """A function, or the public ones of a class and its bases of this package."""
    if inspect.isfunction(value):
        yield value.__name__, value
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if not base.__module__.startswith("kafkaio"):
            continue
        for name, each in vars(base).items():
            if name.startswith("_"):
                continue
            function = each.fget if isinstance(each, property) else each
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function):
                yield name, function


def is_untyped(function: Callable[..., object]) -> bool:
    signature = inspect.signature(function)
    return signature.return_annotation is signature.empty or any(
        parameter.annotation is parameter.empty
        and parameter.name not in {"self", "cls"}
        for parameter in signature.parameters.values()
    )


def test_every_signature_has_types() -> None:
    untyped = []
    for name in sorted({*LOADED} - ELSEWHERE):
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        untyped += [
            f"{name}: {method}"
            for method, function in functions(value)
            if is_untyped(function)
        ]
    assert untyped == []
