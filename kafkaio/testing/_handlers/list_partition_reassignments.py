"""ListPartitionReassignments, version 0 (KIP-455): a move takes no time here."""

from __future__ import annotations

from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: ListPartitionReassignmentsRequest,
    connection: ServerConnection,
) -> ListPartitionReassignmentsResponse:
    """Answer that no replica is being moved."""
    del header, request
    denied = rights_of(node, connection).denied(
        Operation.DESCRIBE, ResourceType.CLUSTER
    )
    return ListPartitionReassignmentsResponse(error_code=denied, error_message=None)
