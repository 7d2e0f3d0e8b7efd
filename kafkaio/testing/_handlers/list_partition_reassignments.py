"""ListPartitionReassignments, version 0 (KIP-455): a move takes no time here."""

from __future__ import annotations

from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(ListPartitionReassignmentsRequest)
async def handle(
    context: RequestContext[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    """Answer that no replica is being moved."""
    denied = context.rights.denied(Operation.DESCRIBE, ResourceType.CLUSTER)
    return ListPartitionReassignmentsResponse(error_code=denied, error_message=None)
