"""LeaveGroup, versions 0 to 5: members leave, or an administrator removes them."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> LeaveGroupResponse:
    """Serve one request; before version 3 it is for one member."""
    assert isinstance(request, LeaveGroupRequest)
    coordinator = coordinator_of(node.cluster)
    denied = rights_of(node, connection).denied(
        Operation.READ, ResourceType.GROUP, request.group_id
    )
    if denied:
        return LeaveGroupResponse(error_code=denied)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator.refuse(node.node_id, request.group_id)
    if error:
        return LeaveGroupResponse(error_code=error)
    leavers = request.members
    if header.request_api_version < 3:
        leavers = [MemberIdentity(member_id=request.member_id)]
    errors = coordinator.leave(
        request.group_id, [(one.member_id, one.group_instance_id) for one in leavers]
    )
    if header.request_api_version < 3:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=code,
            )
            for one, code in zip(leavers, errors, strict=True)
        ]
    )
