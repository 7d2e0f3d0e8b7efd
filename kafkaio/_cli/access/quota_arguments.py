"""Converts options to quotas: the entity, and the limits.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from kafkaio._cli.text.sizes import BadSize, size_of
from kafkaio.admin._types import QuotaEntity, QuotaFilter, QuotaName


class BadQuota(Exception):
    """Options do not define a quota; the message is one line."""


def quota_of(text: str) -> tuple[str, float]:
    """Return the name and the number of ``NAME=NUMBER``.

    Raises:
        BadQuota: the text has another form.
    """
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise BadQuota(f"{text!r} is not NAME=NUMBER, such as producer_byte_rate=10MB")
    try:
        return name.strip(), size_of(value)
    except BadSize as error:
        raise BadQuota(str(error)) from None


def quotas_of(texts: Iterable[str]) -> dict[str, float]:
    """Return the numbers of several quotas by name.

    Raises:
        BadQuota: a text has another form, or a name occurs twice.
    """
    # A repeated name is an error and not an override: one of the two is a mistake.
    found: dict[str, float] = {}
    for text in texts:
        name, value = quota_of(text)
        if name in found:
            raise BadQuota(f"{name} occurs twice")
        found[name] = value
    return found


#: The name of a user, client id or address, the default of its kind, or None.
Named = str | Literal[QuotaName.DEFAULT] | None


def entity_of(user: Named, client_id: Named, ip: Named) -> QuotaEntity:
    """Return the entity of quotas.

    Raises:
        BadQuota: no entity is named, or an address together with a user or client id.
    """
    if user is None and client_id is None and ip is None:
        raise BadQuota("name a user, a client id or an IP address")
    # Brokers limit connections by address before anybody has logged in (KIP-612).
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
    """Return the filter of quotas: all, if no entity is named.

    Raises:
        BadQuota: an address together with a user or client id, or ``--strict`` without
            an entity.
    """
    if user is None and client_id is None and ip is None:
        if strict:
            raise BadQuota("--strict: name a user, a client id or an IP address")
    elif ip is not None and (user is not None or client_id is not None):
        raise BadQuota("an IP address goes with neither a user nor a client id")
    return QuotaFilter(user=user, client_id=client_id, ip=ip, strict=strict)
