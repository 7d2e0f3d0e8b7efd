"""DescribeGroups, versions 0 to 6: describe classic groups."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import State
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import describe_classic_group
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> DescribeGroupsResponse:
    """Serve one request; before version 6, an unknown group is in state Dead."""
    assert isinstance(request, DescribeGroupsRequest)
    coordinator = coordinator_of(node.cluster)
    rights = rights_of(node, connection)
    answer = DescribeGroupsResponse()
    for group_id in request.groups:
        error = rights.denied(
            Operation.DESCRIBE, ResourceType.GROUP, group_id
        ) or coordinator.refuse(node.node_id, group_id)
        group = coordinator.find(group_id)
        if error:
            found = DescribedGroup(error_code=error, group_id=group_id)
        elif isinstance(group, ClassicGroup):
            found = describe_classic_group(group)
        else:
            found = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
            if header.request_api_version >= 6:
                found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                found.error_message = f"Group {group_id} not found."
                if group is not None:
                    found.error_message = f"Group {group_id} is not a classic group."
        if not found.error_code:
            found.authorized_operations = rights.operations(
                ResourceType.GROUP,
                group_id,
                is_asked=request.include_authorized_operations,
            )
        answer.groups.append(found)
    return answer
