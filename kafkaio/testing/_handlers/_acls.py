"""Helpers of the APIs of ACLs: the numbers of a request as the types of an ACL."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol, TypeVar

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext
from kafkaio.testing._security.acls import (
    AclFilter,
    AclStore,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

_UNKNOWN: Final = 0
_Numbered = TypeVar("_Numbered", bound=IntEnum)


class _AclFilterPort(Protocol):
    @property
    def resource_type_filter(self) -> int: ...
    @property
    def resource_name_filter(self) -> str | None: ...
    @property
    def pattern_type_filter(self) -> int: ...
    @property
    def principal_filter(self) -> str | None: ...
    @property
    def host_filter(self) -> str | None: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


def enum_of(kind: type[_Numbered], number: int) -> _Numbered:
    """The member with a number; UNKNOWN for a number that is not known."""
    known = number in kind.__members__.values()
    return kind(number if known else _UNKNOWN)


def filter_of(asked: _AclFilterPort) -> AclFilter:
    """The filter of a request; an UNKNOWN in it chooses nothing."""
    return AclFilter(
        resource_type=enum_of(ResourceType, asked.resource_type_filter),
        name=asked.resource_name_filter,
        pattern=enum_of(PatternType, asked.pattern_type_filter),
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=enum_of(Operation, asked.operation),
        permission=enum_of(Permission, asked.permission_type),
    )


def acls_for(
    context: RequestContext[Request[Response]], operation: Operation
) -> AclStore:
    """The ACLs, for a client with a right on the cluster.

    Raises:
        Refusal: SECURITY_DISABLED if there are none, CLUSTER_AUTHORIZATION_FAILED.
    """
    acls = context.node.broker.security.acls
    if acls is None:
        text = "No Authorizer is configured."
        raise Refusal(ErrorCode.SECURITY_DISABLED, text)
    context.rights.require(operation, ResourceType.CLUSTER)
    return acls
