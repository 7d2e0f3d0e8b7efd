"""A plugin of pytest: modules that only aiokafka's own tests import.

Test files import internals beside what is public, so that without these no test of such
a file could run. Whatever is taken from one of them is a class that cannot be used: a
test that does fails with `InternalUsed`, and the others run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

#: Below aiokafka; with what is below them.
_INTERNALS = (
    "conn",
    "consumer.fetcher",
    "consumer.group_coordinator",
    "producer.message_accumulator",
    "producer.sender",
    "producer.transaction_manager",
    "protocol",
    "record",
)
_PACKAGES = ("aiokafka", "kafkaio.aiokafka")


class InternalUsed(Exception):
    """The test uses a part of aiokafka that is not public."""


class _Refusing(type):
    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise InternalUsed(cls.__name__)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InternalUsed(f"{cls.__name__}.{name}")


class _Stand(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Refusing(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        for package in _PACKAGES:
            below = f"{name.removeprefix(f'{package}.')}."
            if name.startswith(f"{package}.") and any(
                below.startswith(f"{each}.") for each in _INTERNALS
            ):
                return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Stand(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


if os.environ["KAFKAIO_SUITE_CLIENT"] == "kafkaio":
    sys.meta_path.insert(0, _Finder())
