"""Access control lists by the rules of Kafka's StandardAuthorizer (KIP-11, KIP-290).

Who may do something is decided in this order; the first rule that applies counts:

1. A super user may do everything.
2. An ACL that denies it, for the principal and the host, on a pattern that covers the
   resource: no.
3. An ACL that allows it: yes. One that allows READ, WRITE, DELETE or ALTER allows
   DESCRIBE, too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. A denial implies nothing.
4. No ACL at all covers the resource: what ``allow_if_none`` says.
5. No.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kafkaio._public import public

#: The name of the only resource of the type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"
#: The name of every resource, and every host.
WILDCARD: Final = "*"
_EVERY_PRINCIPAL: Final = "User:*"
#: A name for which nobody has an ACL: only super users may use it in any case.
_NOBODYS: Final = "hardcode"


@public("kafkaio.testing")
class ResourceType(IntEnum):
    """The types of resources, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


@public("kafkaio.testing")
class PatternType(IntEnum):
    """The ways in which an ACL's name covers resources, by Kafka's numbers.

    ANY and MATCH are for filters only.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


@public("kafkaio.testing")
class Operation(IntEnum):
    """The operations on a resource, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


@public("kafkaio.testing")
class Permission(IntEnum):
    """Whether an ACL denies or allows, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
#: The operations that answers report for a resource (KIP-430), by its type.
OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        *_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        *_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
        *_CONFIGS,
    ),
}
#: The operations whose ACLs allow another one, too.
_ALLOWING: Final[Mapping[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}


class InvalidAcl(ValueError):
    """An ACL or a filter that Kafka refuses; says why."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The client that an ACL is about.

    Attributes:
        principal: such as ``User:alice``.
        host: its address.
    """

    principal: str
    host: str


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One rule.

    Attributes:
        resource_type: what it protects.
        name: the resource's name or, for PREFIXED, how it begins. The LITERAL name
            ``*`` stands for every resource.
        principal: whom it concerns; ``User:*`` for everybody.
        operation: what it denies or allows; ALL for everything.
        permission: whether it denies or allows.
        pattern: LITERAL or PREFIXED.
        host: the client's address; ``*`` for any.
    """

    resource_type: ResourceType
    name: str
    principal: str
    operation: Operation
    permission: Permission = Permission.ALLOW
    pattern: PatternType = PatternType.LITERAL
    host: str = WILDCARD

    def check(self) -> None:
        """Check that Kafka would take it.

        Raises:
            InvalidAcl: it would not.
        """
        kind = self.resource_type
        if kind is ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            raise InvalidAcl(
                f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
            )
        if not self.name:
            raise InvalidAcl("Invalid empty resource name")
        if kind in {ResourceType.UNKNOWN, ResourceType.ANY}:
            raise InvalidAcl(f"Invalid resourceType {kind.name}")
        if self.pattern not in {PatternType.LITERAL, PatternType.PREFIXED}:
            raise InvalidAcl(f"Invalid patternType {self.pattern.name}")
        if self.operation in {Operation.UNKNOWN, Operation.ANY}:
            raise InvalidAcl(f"Invalid operation {self.operation.name}")
        if self.permission not in {Permission.DENY, Permission.ALLOW}:
            raise InvalidAcl(f"Invalid permissionType {self.permission.name}")
        if ":" not in self.principal:
            raise InvalidAcl(
                f"Could not parse principal from `{self.principal}` (no colon is"
                " present separating the principal type from the principal name)"
            )

    def covers(self, name: str) -> bool:
        """Whether its pattern covers the name of a resource of its type."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, WILDCARD}

    def concerns(self, visitor: Visitor) -> bool:
        """Whether it is about this client."""
        return (
            self.principal in {visitor.principal, _EVERY_PRINCIPAL}
            and self.host in {visitor.host, WILDCARD}
        )  # fmt: skip

    def decides(self, operation: Operation) -> bool:
        """Whether it is about an operation, by itself or by what it implies."""
        if self.operation in {operation, Operation.ALL}:
            return True
        # Only permissions imply others: to deny READ does not deny DESCRIBE.
        implied = _ALLOWING.get(operation, frozenset())
        return self.permission is Permission.ALLOW and self.operation in implied


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Chooses ACLs; by default all.

    Attributes:
        resource_type: the type of their resource, or ANY.
        name: their name; None for any.
        pattern: their pattern type; ANY for both, by exact name; MATCH for all those
            that cover a resource of this name.
        principal: their principal, exactly; None for any.
        host: their host, exactly; None for any.
        operation: their operation, exactly; or ANY.
        permission: their permission, or ANY.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether it asks for something UNKNOWN, which no ACL has."""
        asked = (self.resource_type, self.pattern, self.operation, self.permission)
        return any(not one for one in asked)

    def fits(self, acl: Acl) -> bool:
        """Whether an ACL is chosen."""
        return (
            self.resource_type in {ResourceType.ANY, acl.resource_type}
            and self._fits_name(acl)
            and self.principal in {None, acl.principal}
            and self.host in {None, acl.host}
            and self.operation in {Operation.ANY, acl.operation}
            and self.permission in {Permission.ANY, acl.permission}
        )

    def _fits_name(self, acl: Acl) -> bool:
        if self.pattern not in {PatternType.ANY, PatternType.MATCH, acl.pattern}:
            return False
        if self.name is None:
            return True
        if self.pattern is PatternType.MATCH:
            return acl.covers(self.name)
        return self.name == acl.name


@public("kafkaio.testing")
class AclStore:
    """The ACLs of a cluster; decides who may do what.

    Args:
        super_users: principals that may do everything.
        allow_if_none: whether everybody may use a resource that no ACL covers
            (allow.everyone.if.no.acl.found).
    """

    def __init__(
        self, super_users: Iterable[str] = (), *, allow_if_none: bool = False
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_none = allow_if_none
        # In the order in which they came; a second one that is equal changes nothing.
        self._acls: dict[Acl, None] = {}

    def __len__(self) -> int:
        return len(self._acls)

    def add(self, acl: Acl) -> None:
        """Add an ACL; no change if it is there already.

        Raises:
            InvalidAcl: Kafka would not take it.
        """
        acl.check()
        self._acls[acl] = None

    def find(self, chosen: AclFilter) -> list[Acl]:
        """The ACLs that a filter chooses, oldest first."""
        return [acl for acl in self._acls if chosen.fits(acl)]

    def remove(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """Delete the ACLs that any of the filters chooses.

        Returns:
            What each filter chose; an ACL that two of them choose is in both lists.
        """
        # All before the first is deleted, so that filters do not hide ACLs from one
        # another.
        found = [self.find(chosen) for chosen in filters]
        for acl in {acl for chosen in found for acl in chosen}:
            del self._acls[acl]
        return found

    def allows(
        self, visitor: Visitor, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """Whether a client may do something with a resource."""
        if visitor.principal in self._super_users:
            return True
        covering = [
            acl
            for acl in self._acls
            if acl.resource_type is kind and acl.covers(name)
        ]  # fmt: skip
        # About anybody: an ACL for another principal protects the resource, too.
        if not covering:
            return self._allow_if_none
        deciding = {
            acl.permission
            for acl in covering
            if acl.concerns(visitor) and acl.decides(operation)
        }
        # One denial outweighs all permissions; without either the answer is no.
        return deciding == {Permission.ALLOW}

    def allows_any(
        self, visitor: Visitor, operation: Operation, kind: ResourceType
    ) -> bool:
        """Whether a client may do something with any resource of a type (KIP-679).

        As in Kafka, an allowance counts if no denial covers all that it covers: the
        resource need not exist. ACLs that merely imply the operation do not count.
        """
        # A super user, or a wildcard.
        if self.allows(visitor, operation, kind, _NOBODYS):
            return True
        own = [
            acl
            for acl in self._acls
            if acl.resource_type is kind
            and acl.concerns(visitor)
            and acl.operation in {operation, Operation.ALL}
        ]
        denying = [acl for acl in own if acl.permission is Permission.DENY]
        return any(
            not _is_denied(acl, denying)
            for acl in own
            if acl.permission is Permission.ALLOW
        )


def _is_denied(allowing: Acl, denying: Collection[Acl]) -> bool:
    """Whether one of the denials covers whatever an allowance covers."""
    for acl in denying:
        if acl.pattern is PatternType.PREFIXED:
            # No prefix outweighs the wildcard, not even the prefix "*".
            if not _is_wildcard(allowing) and allowing.name.startswith(acl.name):
                return True
        elif _is_wildcard(acl) or (
            allowing.pattern is PatternType.LITERAL and allowing.name == acl.name
        ):
            return True
    return False


def _is_wildcard(acl: Acl) -> bool:
    return acl.pattern is PatternType.LITERAL and acl.name == WILDCARD
