"""What makes classes generic over the types of keys and values.

The defaults of the type variables (PEP 696) let ``Record`` mean ``Record[bytes | None,
bytes | None]``. Type checkers know them from typing_extensions, whose stubs they bring
along. At run time there are plain type variables on every Python: nothing needs
typing_extensions.

`Generic` is that of `typing` for type checkers. At run time it only lets
``Record[str, Order]`` be written, which is `types.GenericAlias`, as of ``list[str]``:
such a class is defined in less time, its bases stay as they are, and frozen dataclasses
can be made by ``NewRecord[str, Order](...)``, which `typing.Generic` of Python 3.11
does not allow.
"""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Generic as Generic

    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name, *, default, **options):
        """Make a type variable without its default."""
        del default
        return _TypeVar(name, **options)

    class Generic:
        """A base of classes that may be subscribed with types."""

        __slots__ = ()

        __class_getitem__ = classmethod(GenericAlias)


#: Of what both takes and gives keys and values.
K = TypeVar("K", default="bytes | None")
V = TypeVar("V", default="bytes | None")
#: Of what only gives them: records, and what reads records.
K_co = TypeVar("K_co", covariant=True, default="bytes | None")
V_co = TypeVar("V_co", covariant=True, default="bytes | None")
#: Of what only takes them: what writes records.
K_contra = TypeVar("K_contra", contravariant=True, default="bytes | None")
V_contra = TypeVar("V_contra", contravariant=True, default="bytes | None")
#: Of one call: what its arguments say, and anything at all where they say nothing.
KeyT = TypeVar("KeyT", default=Any)
ValueT = TypeVar("ValueT", default=Any)
