"""The reference leaves out no public name, and no method of what it shows."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import kafkaio

REFERENCE = "".join(
    file.read_text(encoding="utf-8")
    for file in (Path(__file__).parents[2] / "docs" / "reference").glob("*.md")
)
#: What autodoc shows, and the classes of options, which are described by tables.
DIRECTIVE = re.compile(r"\.\. (?:auto|py:)(\w+):: (kafkaio[\w.]*)\n((?: +:.*\n)*)")
SHOWN = {name: options for _, name, options in DIRECTIVE.findall(REFERENCE)}
#: Names that modules show which are documented as a whole, or in part.
OF_MODULES = {
    f"{module}.{name}"
    for kind, module, options in DIRECTIVE.findall(REFERENCE)
    for members in re.findall(r":members:(.*)", options)
    if kind == "module"
    for name in filter(None, members.strip().split(", "))
} | {
    f"{module}.{name}"
    for kind, module, options in DIRECTIVE.findall(REFERENCE)
    if kind == "module" and ":members:\n" in options
    for name in importlib.import_module(module).__all__
}
#: A flag, a package with a page of Kafka's own, and keyword types, whose options stand
#: in the tables.
NO_CLASSES = {
    *("kafkaio.__version__", "kafkaio.accelerated", "kafkaio.messages"),
    *("kafkaio.ClientOptions", "kafkaio.ConsumerOptions", "kafkaio.ProducerOptions"),
    "kafkaio.ShareConsumerOptions",
}
PACKAGES = [
    *("kafkaio", "kafkaio.admin", "kafkaio.arrow", "kafkaio.errors"),
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


@pytest.mark.parametrize("name", sorted({*NAMES} - NO_CLASSES))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert name in SHOWN or name in OF_MODULES


def test_the_reference_shows_public_paths() -> None:
    assert not [name for name in SHOWN if "._" in name]


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
