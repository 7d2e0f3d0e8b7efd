"""From options of kafka-acls to entries of access control lists, and to filters.

Pure. An entry has one resource, one principal, one host and one operation; options that
are repeated mean every combination.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Final

from kafkaio._dataclass import dataclass
from kafkaio.admin._types import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)

#: A kind of resource and its name.
Resource = tuple[AclResourceType, str]
#: A resource and what may be done with it.
Grant = tuple[Resource, AclOperation]

#: The only resource of its kind.
CLUSTER: Final[Resource] = (AclResourceType.CLUSTER, "kafka-cluster")
_ANY_HOST: Final = "*"
_ANY_RESOURCE: Final = ((AclResourceType.ANY, None),)
_NONE: Final[tuple[str | None, ...]] = (None,)
_OPERATIONS: Final = {
    each.name.replace("_", "").casefold(): each
    for each in AclOperation
    if each is not AclOperation.UNKNOWN
}


class BadAcl(Exception):
    """Options make no entry or filter; the message says why in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Whom entries are for.

    Attributes:
        allow: principals that are allowed something.
        deny: principals that are denied it.
        allow_hosts: the addresses from which the first are; any by default.
        deny_hosts: likewise for the others.
        either: in filters, principals that are allowed or denied something.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    either: Sequence[str] = ()


def operation_of(text: str) -> AclOperation:
    """Return the operation of a name such as ``READ`` or ``describe-configs``.

    Raises:
        BadAcl: there is none; the message has the nearest.
    """
    plain = text.replace("_", "").replace("-", "").casefold()
    found = _OPERATIONS.get(plain)
    if found is None:
        near = get_close_matches(plain, _OPERATIONS, 1)
        hint = f"; did you mean {_OPERATIONS[near[0]]}?" if near else ""
        raise BadAcl(f"there is no operation {text!r}{hint}")
    return found


def principal_of(text: str) -> str:
    """Return a principal with its type, which is ``User`` if none is given.

    Raises:
        BadAcl: it has no name.
    """
    kind, colon, name = text.partition(":")
    if not colon or "=" in kind:
        kind, name = "User", text
    if not kind or not name:
        raise BadAcl(f"{text!r} is no principal, such as User:alice")
    return f"{kind}:{name}"


def producer_grants(
    topics: Iterable[str], transactional_ids: Iterable[str], *, idempotent: bool
) -> list[Grant]:
    """Return what a producer needs, as kafka-acls --producer does."""
    op, kind = AclOperation, AclResourceType
    grants: list[Grant] = [
        ((kind.TOPIC, name), operation)
        for name in topics
        for operation in (op.WRITE, op.DESCRIBE, op.CREATE)
    ]
    grants += [
        ((kind.TRANSACTIONAL_ID, name), operation)
        for name in transactional_ids
        for operation in (op.WRITE, op.DESCRIBE)
    ]
    if idempotent:
        grants.append((CLUSTER, op.IDEMPOTENT_WRITE))
    return grants


def consumer_grants(topics: Iterable[str], groups: Iterable[str]) -> list[Grant]:
    """Return what a consumer needs, as kafka-acls --consumer does."""
    op, kind = AclOperation, AclResourceType
    grants: list[Grant] = [
        ((kind.TOPIC, name), operation)
        for name in topics
        for operation in (op.READ, op.DESCRIBE)
    ]
    return grants + [((kind.GROUP, name), op.READ) for name in groups]


def bindings_of(
    grants: Iterable[Grant], who: Who, pattern: AclPatternType
) -> list[AclBinding]:
    """Return an entry for every grant, principal and host, each once.

    The pattern is for all resources but the cluster, which has one name.
    """
    found: dict[AclBinding, None] = {}
    for (resource, operation), (permission, principal, host) in product(
        grants, _subjects(who)
    ):
        binding = AclBinding(
            resource_type=resource[0],
            resource_name=resource[1],
            principal=principal,
            operation=operation,
            permission=permission,
            host=host,
            pattern_type=AclPatternType.LITERAL if resource == CLUSTER else pattern,
        )
        found[binding] = None
    return list(found)


def _subjects(who: Who) -> list[tuple[AclPermission, str, str]]:
    allowed = product([AclPermission.ALLOW], who.allow, who.allow_hosts or [_ANY_HOST])
    denied = product([AclPermission.DENY], who.deny, who.deny_hosts or [_ANY_HOST])
    return [*allowed, *denied]


def filters_of(
    resources: Sequence[Resource],
    operations: Sequence[AclOperation],
    who: Who,
    pattern: AclPatternType,
) -> list[AclBindingFilter]:
    """Return a filter for every combination; what is not given may be anything."""
    subjects: list[tuple[AclPermission, str | None, str | None]] = []
    for permission, principals, hosts in (
        (AclPermission.ALLOW, who.allow, who.allow_hosts),
        (AclPermission.DENY, who.deny, who.deny_hosts),
    ):
        if principals or hosts:
            subjects += product([permission], principals or _NONE, hosts or _NONE)
    subjects += product([AclPermission.ANY], who.either, _NONE)
    kinds: Sequence[tuple[AclResourceType, str | None]] = resources or _ANY_RESOURCE
    return [
        AclBindingFilter(
            resource_type=kind,
            resource_name=name,
            principal=principal,
            operation=operation,
            permission=permission,
            host=host,
            pattern_type=(
                AclPatternType.ANY if kind is AclResourceType.CLUSTER else pattern
            ),
        )
        for (kind, name), operation, (permission, principal, host) in product(
            kinds,
            operations or [AclOperation.ANY],
            subjects or [(AclPermission.ANY, None, None)],
        )
    ]
