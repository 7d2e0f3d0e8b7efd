"""ListGroups, versions 0 to 5: list the groups that a node coordinates."""

from __future__ import annotations

from kafkaio.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.coordinator import Group, coordinator_of
from kafkaio.testing._groups.share import ShareGroup
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(ListGroupsRequest)
async def handle(context: RequestContext[ListGroupsRequest]) -> ListGroupsResponse:
    """List groups. Filters ignore case; an empty filter matches every group."""
    # A node lists what it coordinates; clients ask every node.
    groups = coordinator_of(context.cluster).led_by(context.node.node_id)
    rights = context.rights
    if not rights.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        groups = [
            group
            for group in groups
            if rights.may(Operation.DESCRIBE, ResourceType.GROUP, group.id)
        ]
    states = {one.lower() for one in context.request.states_filter}
    types = {one.lower() for one in context.request.types_filter}
    listed = map(_listed, groups)
    return ListGroupsResponse(
        groups=[
            one
            for one in listed
            if (not states or one.group_state.lower() in states)
            and (not types or one.group_type in types)
        ]
    )


def _listed(group: Group) -> ListedGroup:
    if isinstance(group, ClassicGroup):
        return ListedGroup(
            group_id=group.id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type="classic",
        )
    kind = "share" if isinstance(group, ShareGroup) else "consumer"
    return ListedGroup(
        group_id=group.id,
        protocol_type=kind,
        group_state=group.state,
        group_type=kind,
    )
