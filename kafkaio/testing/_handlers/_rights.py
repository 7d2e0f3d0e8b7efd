"""The rights of a client, as the handlers check them.

A handler takes them once per request from `rights_of`. On a broker without ACLs
everything is allowed, and nothing is looked up.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    AclStore,
    Operation,
    ResourceType,
    Visitor,
)

_DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
_NOT_REQUESTED: Final = -(2**31)


class Rights:
    """The rights of one client.

    Args:
        acls: decides; None if everybody may do everything.
        visitor: the client.
    """

    __slots__ = ("_acls", "_visitor")

    def __init__(self, acls: AclStore | None, visitor: Visitor) -> None:
        self._acls = acls
        self._visitor = visitor

    def may(
        self, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME
    ) -> bool:
        """Whether the client may do something with a resource."""
        acls = self._acls
        return acls is None or acls.allows(self._visitor, operation, kind, name)

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether the client may do something with any resource of a type."""
        acls = self._acls
        return acls is None or acls.allows_any(self._visitor, operation, kind)

    def denied(
        self, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME
    ) -> ErrorCode:
        """The error for a client that may not do something; NONE if it may."""
        if self.may(operation, kind, name):
            return ErrorCode.NONE
        return _DENIED[kind]

    def require(
        self, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME
    ) -> None:
        """Check that the client may do something.

        Raises:
            Refusal: with the error of that type of resource.
        """
        code = self.denied(operation, kind, name)
        if code:
            told = kind.name.replace("_", " ").capitalize()
            raise Refusal(code, f"{told} authorization failed.")

    def denied_creation(self, topic: str) -> ErrorCode:
        """The error for a client that may not create a topic; NONE if it may."""
        if self.may(Operation.CREATE, ResourceType.CLUSTER):
            return ErrorCode.NONE
        return self.denied(Operation.CREATE, ResourceType.TOPIC, topic)

    def operations(
        self,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        is_asked: bool = True,
    ) -> int:
        """The operations that a resource allows the client, as a bit field (KIP-430).

        Args:
            kind: the resource's type.
            name: its name.
            is_asked: whether the client wants to know; if not, the field is unset.
        """
        if not is_asked:
            return _NOT_REQUESTED
        allowed = (one for one in OPERATIONS[kind] if self.may(one, kind, name))
        return sum(1 << one for one in allowed)

    def cluster_operations(self, *, is_asked: bool) -> int:
        """The operations that the cluster allows; 0 if it may not be described."""
        # A client without this right gets an empty set rather than an error (KIP-430).
        if is_asked and not self.may(Operation.DESCRIBE, ResourceType.CLUSTER):
            return 0
        return self.operations(ResourceType.CLUSTER, is_asked=is_asked)


_EVERYTHING: Final = Rights(None, Visitor("", ""))


def rights_of(node: BrokerNode, connection: ServerConnection) -> Rights:
    """The rights of the client of a connection."""
    acls = node.broker.security.acls
    if acls is None:
        # One object for all: a broker without ACLs makes none for a request.
        return _EVERYTHING
    return Rights(acls, Visitor(connection.principal, connection.client_host))
