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
DIRECTIVE = re.compile(
    r"\.\. (?:auto|py:)(class|module|function):: (\S+)\n((?: +:.*\n)*)"
)
SHOWN = {name: options for _, name, options in DIRECTIVE.findall(REFERENCE)}
#: Names that modules show which are documented as a whole.
OF_MODULES = {
    name
    for kind, module, options in DIRECTIVE.findall(REFERENCE)
    if kind == "module" and ":members:\n" in options
    for name in vars(importlib.import_module(module))
    if not name.startswith("_")
}
#: A flag, and a package with a page of Kafka's own.
NO_CLASSES = {"__version__", "accelerated", "messages"}


@pytest.mark.parametrize("name", sorted(set(kafkaio.__all__) - NO_CLASSES))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    shown = {f"kafkaio.{name}", f"kafkaio._config.{name}"}
    assert shown & set(SHOWN) or name in OF_MODULES


@pytest.mark.parametrize("name", ["Client", "Producer", "Consumer", "Lane"])
def test_methods_of_private_bases_are_shown(name: str) -> None:
    public = getattr(kafkaio, name)
    inherited = {
        attribute
        for base in public.__mro__[1:-1]
        for attribute in vars(base)
        if not attribute.startswith("_") and attribute not in vars(public)
    }
    assert not inherited or ":inherited-members:" in SHOWN[f"kafkaio.{name}"]
