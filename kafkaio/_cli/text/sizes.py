"""Numbers of bytes with units: ``10MB`` is 10,000,000, ``10MiB`` is 10,485,760."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z]*)")
#: Powers of 1000 and of 1024, as IEC 80000-13 defines the units. Case does not count.
_UNITS: Final[Mapping[str, int]] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**at for at, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**at for at, prefix in enumerate("kmgt", 1)},
}


class BadSize(Exception):
    """A text is not a number of bytes; the message is one line."""


def size_of(text: str) -> float:
    """Return a number that may have a unit of bytes.

    Raises:
        BadSize: the text is not a number, or its unit is unknown.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise BadSize(f"{text!r} is not a number, nor a size such as 10MB or 10MiB")
    unit = _UNITS.get(found[2].casefold())
    if unit is None:
        raise BadSize(f"{text!r}: the unit must be one of B, kB, KiB, MB, MiB, GB, GiB")
    return float(found[1]) * unit
