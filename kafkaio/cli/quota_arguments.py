"""From options to quotas: whom they are for, and how much.

Pure. Sizes are numbers, or have a unit: ``10MB`` is 10,000,000 and ``10MiB`` is
10,485,760.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kafkaio.admin.types import QuotaEntity, QuotaFilter, QuotaName

__all__ = ["BadQuota", "entity_of", "filter_of", "quota_of", "quotas_of", "size_of"]

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z]*)")
_UNITS: Final[Mapping[str, int]] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**at for at, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**at for at, prefix in enumerate("kmgt", 1)},
}


class BadQuota(Exception):
    """Options make no quota; the message says why in one line."""


def size_of(text: str) -> float:
    """Return a number that may have a unit of bytes.

    Raises:
        BadQuota: it is none.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise BadQuota(f"{text!r} is not a number, nor a size such as 10MB or 10MiB")
    unit = _UNITS.get(found[2].casefold())
    if unit is None:
        raise BadQuota(
            f"{text!r}: the unit must be one of B, kB, KiB, MB, MiB, GB, GiB"
        )
    return float(found[1]) * unit


def quota_of(text: str) -> tuple[str, float]:
    """Return the name and the number of ``NAME=NUMBER``.

    Raises:
        BadQuota: it is none.
    """
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise BadQuota(f"{text!r} is not NAME=NUMBER, such as producer_byte_rate=10MB")
    return name.strip(), size_of(value)


def quotas_of(texts: Iterable[str]) -> dict[str, float]:
    """Return the numbers of several quotas by name.

    Raises:
        BadQuota: one is none, or there twice.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, value = quota_of(text)
        if name in found:
            raise BadQuota(f"{name} is there twice")
        found[name] = value
    return found


Named = str | Literal[QuotaName.DEFAULT] | None


def entity_of(user: Named, client_id: Named, ip: Named) -> QuotaEntity:
    """Return whom quotas are for.

    Raises:
        BadQuota: nobody is named, or an address beside a user or client id.
    """
    if user is None and client_id is None and ip is None:
        raise BadQuota("name a user, a client id or an IP address")
    if ip is not None and (user is not None or client_id is not None):
        raise BadQuota("an IP address goes with neither a user nor a client id")
    return QuotaEntity(user=user, client_id=client_id, ip=ip)


def filter_of(
    user: str | QuotaName | None,
    client_id: str | QuotaName | None,
    ip: str | QuotaName | None,
    *,
    strict: bool,
) -> QuotaFilter:
    """Return which quotas are meant: all, if nobody is named.

    Raises:
        BadQuota: an address beside a user or client id; or nobody, strictly.
    """
    if user is None and client_id is None and ip is None:
        if strict:
            raise BadQuota("--strict: name a user, a client id or an IP address")
    elif ip is not None and (user is not None or client_id is not None):
        raise BadQuota("an IP address goes with neither a user nor a client id")
    return QuotaFilter(user=user, client_id=client_id, ip=ip, strict=strict)
