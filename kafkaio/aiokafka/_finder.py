"""The import system finds ``aiokafka`` as `kafkaio.aiokafka`; see `install`.

A module gets a second name, not a second copy: ``aiokafka.errors`` is the same object
as ``kafkaio.aiokafka.errors``. So every class exists once, whichever name imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from types import ModuleType

_HERE = "kafkaio.aiokafka"
_THERE = "aiokafka"


class _Alias(Loader):
    """Gives a module of `kafkaio.aiokafka` its second name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has written the spec of the second name into the module,
        # by which `importlib.reload` and `pickle` would take it for another one.
        module.__spec__ = self._spec


#: Questions for all distributions, and for that of aiokafka.
_EVERY = DistributionFinder.Context()
_THIS = DistributionFinder.Context(name=_THERE)


class _Finder(DistributionFinder):
    """Finds ``aiokafka.X`` as ``kafkaio.aiokafka.X``, and the distribution."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not f"{name}.".startswith(f"{_THERE}."):
            return None
        ours = _HERE + name.removeprefix(_THERE)
        known = find_spec(ours)
        if known is None:
            # Not left to the next finder: it would look into this package's folder.
            raise ModuleNotFoundError(
                f"No module named {name!r}: kafkaio.aiokafka stands in the place of "
                "aiokafka, and has its public modules alone",
                name=name,
            )
        return ModuleSpec(
            name,
            _Alias(ours),
            origin=known.origin,
            is_package=known.submodule_search_locations is not None,
        )

    def find_distributions(
        self, context: DistributionFinder.Context = _EVERY
    ) -> Iterator[Distribution]:
        # Who names a path asks what is installed there.
        if context.name not in {None, _THERE} or "path" in vars(context):
            return
        if not any(MetadataPathFinder.find_distributions(_THIS)):
            yield _Installed()


FINDER = _Finder()


class _Installed(Distribution):
    """The distribution ``aiokafka`` where none is installed."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            version = sys.modules[_HERE].__version__
            return (
                f"Metadata-Version: 2.1\nName: {_THERE}\nVersion: {version}\n"
                "Summary: the names of aiokafka, by kafkaio.aiokafka.install()\n"
            )
        return f"{_THERE}\n" if filename == "top_level.txt" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(__file__).parent.parent / path
