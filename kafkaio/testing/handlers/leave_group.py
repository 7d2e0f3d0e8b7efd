"""LeaveGroup, versions 0 to 5: members go, or are removed by an administrator."""

from __future__ import annotations

from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Request, Response
from kafkaio.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing.broker.connection import ServerConnection
from kafkaio.testing.broker.node import Node
from kafkaio.testing.groups.coordinator import GroupCoordinator, coordinator_of

__all__ = ["handle"]


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> LeaveGroupResponse:
    """Serve one request; before version 3 it is for one member."""
    del connection
    assert isinstance(request, LeaveGroupRequest)
    coordinator = coordinator_of(node.cluster)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator.refuse(node.node_id, request.group_id)
    if error:
        return LeaveGroupResponse(error_code=error)
    if header.request_api_version < 3:
        leaver = MemberIdentity(member_id=request.member_id)
        return LeaveGroupResponse(
            error_code=_leave(coordinator, request.group_id, leaver)
        )
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=_leave(coordinator, request.group_id, one),
            )
            for one in request.members
        ]
    )


def _leave(
    coordinator: GroupCoordinator, group_id: str, member: MemberIdentity
) -> ErrorCode:
    group = coordinator.find(group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    with coordinator.at_work(group) as now:
        return group.leave(member.member_id, member.group_instance_id, now)
