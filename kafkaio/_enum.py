"""Enums that are defined in half the time.

The standard library makes the members of an enum one by one, as attributes of a class
that is made already: an enum takes as long to define as three other classes, and
`kafkaio.ErrorCode` takes a millisecond. For its own large enums it has a quicker way,
`enum._simple_enum`, which makes the same classes: `Enum` and `IntEnum` here use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import Enum as Enum, IntEnum as IntEnum
else:
    import enum

    class _Definition(type):
        def __new__(cls, name, bases, namespace):
            (base,) = namespace.pop("__orig_bases__")
            qualified = namespace["__qualname__"]
            made = enum._simple_enum(base.kind)(type(name, (), namespace))
            made.__qualname__, made.__doc__ = qualified, namespace.get("__doc__")
            return made

    _BASE = type.__new__(_Definition, "_Enum", (), {})

    class _Base:
        __slots__ = ("kind",)

        def __init__(self, kind):
            self.kind = kind

        def __mro_entries__(self, bases):
            return (_BASE,)

    if hasattr(enum, "_simple_enum"):  # it is not documented
        Enum, IntEnum = _Base(enum.Enum), _Base(enum.IntEnum)
    else:
        Enum, IntEnum = enum.Enum, enum.IntEnum
