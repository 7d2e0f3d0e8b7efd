"""aiokafka and `kafkaio.aiokafka`, to run one program on both."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import pytest


class Side(NamedTuple):
    """One of the two.

    Attributes:
        name: ``aiokafka`` or ``kafkaio.aiokafka``.
        top: the package.
        errors: its exceptions.
    """

    name: str
    top: ModuleType
    errors: ModuleType

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("kafkaio")

    def producer(self, servers: str, **options: Any) -> Any:
        return self.top.AIOKafkaProducer(bootstrap_servers=servers, **options)


def side(name: str) -> Side:
    return Side(name, import_module(name), import_module(f"{name}.errors"))


SIDES = pytest.mark.parametrize("name", ["aiokafka", "kafkaio.aiokafka"])
