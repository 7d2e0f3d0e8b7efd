"""The type variables of keys and values, which all modules share.

Their defaults (PEP 696) let ``Record`` mean ``Record[bytes | None, bytes | None]``. Type
checkers know them from typing_extensions, whose stubs they bring along. At run time
there are plain type variables on every Python, so that nothing needs typing_extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name, *, default, **options):
        """Make a type variable without its default."""
        del default
        return _TypeVar(name, **options)


#: Of what both takes and gives keys and values.
K = TypeVar("K", default="bytes | None")
V = TypeVar("V", default="bytes | None")
#: Of what only gives them: records, and what reads records.
K_co = TypeVar("K_co", covariant=True, default="bytes | None")
V_co = TypeVar("V_co", covariant=True, default="bytes | None")
#: Of what only takes them: what writes records.
K_contra = TypeVar("K_contra", contravariant=True, default="bytes | None")
V_contra = TypeVar("V_contra", contravariant=True, default="bytes | None")
