"""DescribeGroups, versions 0 to 6: describe classic groups."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import ClassicGroupState
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.describe import describe_classic_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(DescribeGroupsRequest)
async def handle(
    context: RequestContext[DescribeGroupsRequest],
) -> DescribeGroupsResponse:
    """Describe groups; before version 6, an unknown group is in state Dead."""
    coordinator = coordinator_of(context.cluster)
    rights = context.rights
    answer = DescribeGroupsResponse()
    for group_id in context.request.groups:
        error = rights.denied(
            Operation.DESCRIBE, ResourceType.GROUP, group_id
        ) or coordinator.refuse(context.node.node_id, group_id)
        group = coordinator.find(group_id)
        if error:
            found = DescribedGroup(error_code=error, group_id=group_id)
        elif isinstance(group, ClassicGroup):
            found = describe_classic_group(group)
        else:
            found = DescribedGroup(
                group_id=group_id, group_state=ClassicGroupState.DEAD.value
            )
            # KIP-1043; before it, an unknown group is one in state Dead.
            if context.version >= 6:
                found.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                found.error_message = f"Group {group_id} not found."
                if group is not None:
                    found.error_message = f"Group {group_id} is not a classic group."
        if not found.error_code:
            found.authorized_operations = rights.operations(
                ResourceType.GROUP,
                group_id,
                is_asked=context.request.include_authorized_operations,
            )
        answer.groups.append(found)
    return answer
