"""DeleteGroups, versions 0 to 2: remove groups without members."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._groups.coordinator import GroupCoordinator, coordinator_of
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> DeleteGroupsResponse:
    """Serve one request."""
    del header
    assert isinstance(request, DeleteGroupsRequest)
    rights = rights_of(node, connection)
    coordinator = coordinator_of(node.cluster)
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id,
                error_code=rights.denied(Operation.DELETE, ResourceType.GROUP, group_id)
                or _delete(coordinator, node.node_id, group_id),
            )
            for group_id in request.groups_names
        ]
    )


def _delete(coordinator: GroupCoordinator, node_id: int, group_id: str) -> ErrorCode:
    error = coordinator.refuse(node_id, group_id)
    if error:
        return error
    group = coordinator.find(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.members:
        return ErrorCode.NON_EMPTY_GROUP
    coordinator.delete(group_id)
    return ErrorCode.NONE
