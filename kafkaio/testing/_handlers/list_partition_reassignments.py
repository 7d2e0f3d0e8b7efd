"""ListPartitionReassignments, version 0 (KIP-455): a move takes no time here."""

from __future__ import annotations

from kafkaio.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkaio.testing._handlers._handler import (
    RequestContext,
    handler,
    right,
    with_message,
)
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(
    ListPartitionReassignmentsRequest,
    right(Operation.DESCRIBE, ResourceType.CLUSTER),
    refused=with_message,
)
async def handle(
    context: RequestContext[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    """Answer that no replica is being moved."""
    del context
    return ListPartitionReassignmentsResponse(error_message=None)
