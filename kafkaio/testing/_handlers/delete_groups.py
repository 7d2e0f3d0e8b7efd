"""DeleteGroups, versions 0 to 3: remove groups without members.

Kafka 4.4 writes a message only where the topology of a streams group cannot be deleted,
which the broker does not keep (KIP-1331).
"""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaio.testing._groups.coordinator import EmbeddedGroupCoordinator, coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(DeleteGroupsRequest)
async def handle(context: RequestContext[DeleteGroupsRequest]) -> DeleteGroupsResponse:
    """Delete groups; each succeeds or fails for itself."""
    rights = context.rights
    coordinator = coordinator_of(context.cluster)
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id,
                error_code=rights.denied(Operation.DELETE, ResourceType.GROUP, group_id)
                or _delete(coordinator, context.node.node_id, group_id),
            )
            for group_id in context.request.groups_names
        ]
    )


def _delete(
    coordinator: EmbeddedGroupCoordinator, node_id: int, group_id: str
) -> ErrorCode:
    error = coordinator.refuse(node_id, group_id)
    if error:
        return error
    group = coordinator.find(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    # Only an administrator's request gets here; members would go on with a group that
    # is gone.
    if group.members:
        return ErrorCode.NON_EMPTY_GROUP
    coordinator.delete(group_id)
    return ErrorCode.NONE
