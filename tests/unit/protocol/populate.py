"""Random messages: every field that a version has is filled, or null, or left out."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from random import Random
from typing import Any
from uuid import UUID

from kafkaio.protocol import messages
from kafkaio.protocol._message import Field, Message, Struct

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@cache
def message_classes() -> tuple[type[Message], ...]:
    """Every message that is generated, headers and data included."""
    named = [getattr(messages, name) for name in messages.__all__]
    found = [cls for cls in named if issubclass(cls, Message)]
    assert len(found) > 190 - 4
    return tuple(found)


def versions(kind: type[Message]) -> range:
    return range(kind.MIN_VERSION, kind.LAST_VERSION + 1)


def every_version() -> list[tuple[type[Message], int]]:
    return [(kind, v) for kind in message_classes() for v in versions(kind)]


def nested(kind: type[Struct]) -> list[type[Struct]]:
    """All structs of the module that defines ``kind``."""
    module = import_module(kind.__module__)
    return [getattr(module, name) for name in module.__all__]


def populate(kind: type[Message], version: int, random: Random) -> Any:
    """Return a message that ``version`` can carry without loss."""
    return _struct(kind, version, random)


def _struct(kind: type[Struct], version: int, random: Random) -> Any:
    values = {
        field.name: _value(field, version, random)
        for field in kind.SCHEMA
        if field.present(version)
        and not (field.is_tagged(version) and random.random() < 0.4)
    }
    return kind(**values)


def _value(field: Field, version: int, random: Random) -> object:
    if field.is_nullable(version) and random.random() < 0.3:
        return None
    if field.array:
        size = random.choice((0, 1, 1, 2, 3))
        return [_item(field, version, random) for _ in range(size)]
    return _item(field, version, random)


def _item(field: Field, version: int, random: Random) -> object:
    if not isinstance(field.type, str):
        return _struct(field.type, version, random)
    return primitive(field.type, random)


def primitive(kind: str, random: Random) -> object:
    if kind in _BITS:
        top = 1 << (_BITS[kind] - 1)
        return random.choice((0, 1, -1, -top, top - 1, random.randrange(-top, top)))
    if kind == "uint16":
        return random.choice((0, 65535, random.randrange(65536)))
    if kind == "bool":
        return random.random() < 0.5
    if kind == "float64":
        return random.choice((0.0, -1.5, random.random() * 1e9))
    if kind == "uuid":
        return UUID(int=random.choice((0, 1, random.getrandbits(128))))
    if kind == "string":
        return random.choice(("", "a", "täst-☃-😀", "x" * random.randrange(300)))
    assert kind in {"bytes", "records"}
    return random.randbytes(random.choice((0, 1, 7, random.randrange(300))))
