"""LeaveGroup, versions 0 to 5: members leave, or an administrator removes them."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(LeaveGroupRequest)
async def handle(context: RequestContext[LeaveGroupRequest]) -> LeaveGroupResponse:
    """Serve one request; before version 3 it is for one member."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    denied = context.rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
    if denied:
        return LeaveGroupResponse(error_code=denied)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator.refuse(context.node.node_id, request.group_id)
    if error:
        return LeaveGroupResponse(error_code=error)
    leavers = request.members
    if context.version < 3:
        leavers = [MemberIdentity(member_id=request.member_id)]
    errors = coordinator.leave(
        request.group_id,
        [(one.member_id, one.group_instance_id) for one in leavers],
    )
    if context.version < 3:
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
