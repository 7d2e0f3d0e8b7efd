"""LeaveGroup, versions 0 to 5: members leave, or an administrator removes them."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._groups import for_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation

#: KIP-345.
_FIRST_WITH_SEVERAL: Final = 3


@handler(LeaveGroupRequest, for_group(Operation.READ))
async def handle(context: RequestContext[LeaveGroupRequest]) -> LeaveGroupResponse:
    """Remove members; before version 3 the request names one."""
    request = context.request
    leavers = request.members
    if context.version < _FIRST_WITH_SEVERAL:
        leavers = [MemberIdentity(member_id=request.member_id)]
    errors = coordinator_of(context.cluster).leave(
        request.group_id, [(one.member_id, one.group_instance_id) for one in leavers]
    )
    if context.version < _FIRST_WITH_SEVERAL:
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
