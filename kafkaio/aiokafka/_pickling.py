"""How an exception is made without its constructor: for pickles and translations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

E = TypeVar("E", bound=Exception)


def restored(
    kind: type[E], args: tuple[object, ...], attributes: Mapping[str, object]
) -> E:
    """Return an exception with these arguments and attributes."""
    # ``kind.__new__`` is that of RuntimeError, also where a timeout is an OSError, too,
    # and Python takes for those the one of OSError alone.
    base = OSError if issubclass(kind, OSError) else Exception
    error = base.__new__(kind, *args)
    BaseException.__init__(error, *args)
    vars(error).update(attributes)
    return error
