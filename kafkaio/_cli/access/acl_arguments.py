"""Converts options of kafka-acls to entries of access control lists, and to filters.

Pure. An entry has one resource, one principal, one host and one operation. Repeated
options stand for every combination.
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

#: The type and the name of a resource.
Resource = tuple[AclResourceType, str]
#: A resource and an operation on it.
Grant = tuple[Resource, AclOperation]

#: The only resource of its type, under the name that brokers require.
CLUSTER: Final[Resource] = (AclResourceType.CLUSTER, "kafka-cluster")
_ANY_HOST: Final = "*"
_ANY_RESOURCE: Final = ((AclResourceType.ANY, None),)
_NONE: Final[tuple[str | None, ...]] = (None,)
#: kafka-acls takes DescribeConfigs, brokers print DESCRIBE_CONFIGS: both are accepted.
_OPERATIONS: Final = {
    each.name.replace("_", "").casefold(): each
    for each in AclOperation
    if each is not AclOperation.UNKNOWN
}


class BadAcl(Exception):
    """Options do not define an entry or a filter; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principals:
    """The principals and hosts of entries.

    Attributes:
        allow: principals with the permission ALLOW.
        deny: principals with the permission DENY.
        allow_hosts: the hosts of `allow`; any by default.
        deny_hosts: the hosts of `deny`; any by default.
        either: principals with either permission; only in filters.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    either: Sequence[str] = ()


def operation_of(text: str) -> AclOperation:
    """Return the operation of a name such as ``READ`` or ``describe-configs``.

    Raises:
        BadAcl: the operation is unknown; the message has the nearest name.
    """
    plain = text.replace("_", "").replace("-", "").casefold()
    found = _OPERATIONS.get(plain)
    if found is None:
        near = get_close_matches(plain, _OPERATIONS, 1)
        hint = f"; did you mean {_OPERATIONS[near[0]]}?" if near else ""
        raise BadAcl(f"unknown operation {text!r}{hint}")
    return found


def principal_of(text: str) -> str:
    """Return a principal with its type, which is ``User`` if none is given.

    Raises:
        BadAcl: the name or the type is empty.
    """
    # The distinguished name of a certificate has a "=" before any colon: it is a name
    # without a type.
    kind, colon, name = text.partition(":")
    if not colon or "=" in kind:
        kind, name = "User", text
    if not kind or not name:
        raise BadAcl(f"{text!r} is not a principal such as User:alice")
    return f"{kind}:{name}"


def producer_grants(
    topics: Iterable[str], transactional_ids: Iterable[str], *, idempotent: bool
) -> list[Grant]:
    """Return the rights of a producer, as kafka-acls --producer does."""
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
    # Since Kafka 2.8 the right to write to a topic includes this one (KIP-679).
    if idempotent:
        grants.append((CLUSTER, op.IDEMPOTENT_WRITE))
    return grants


def consumer_grants(topics: Iterable[str], groups: Iterable[str]) -> list[Grant]:
    """Return the rights of a consumer, as kafka-acls --consumer does."""
    op, kind = AclOperation, AclResourceType
    grants: list[Grant] = [
        ((kind.TOPIC, name), operation)
        for name in topics
        for operation in (op.READ, op.DESCRIBE)
    ]
    return grants + [((kind.GROUP, name), op.READ) for name in groups]


def bindings_of(
    grants: Iterable[Grant], who: Principals, pattern: AclPatternType
) -> list[AclBinding]:
    """Return an entry for every grant, principal and host, each once.

    The pattern applies to all resources except the cluster, which has one name.
    """
    # Two options may grant the same right; a dict drops the second in order.
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


def _subjects(who: Principals) -> list[tuple[AclPermission, str, str]]:
    allowed = product([AclPermission.ALLOW], who.allow, who.allow_hosts or [_ANY_HOST])
    denied = product([AclPermission.DENY], who.deny, who.deny_hosts or [_ANY_HOST])
    return [*allowed, *denied]


def filters_of(
    resources: Sequence[Resource],
    operations: Sequence[AclOperation],
    who: Principals,
    pattern: AclPatternType,
) -> list[AclBindingFilter]:
    """Return a filter for every combination; missing options match anything."""
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
