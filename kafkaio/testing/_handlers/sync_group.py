"""SyncGroup, versions 0 to 5: distribute the leader's assignment."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic_member import SyncRequest
from kafkaio.testing._groups.coordinator import GroupCoordinator, coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType

_FIRST_WITH_PROTOCOL = 5


@handler(SyncGroupRequest)
async def handle(context: RequestContext[SyncGroupRequest]) -> SyncGroupResponse:
    """Serve one request; a follower's answer waits for the leader's request."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    error = _refuse(context, coordinator, (context.node, context.connection))
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # As Kafka: a member that joined before the coordinator moved has to join again.
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error:
        return SyncGroupResponse(error_code=error)
    syncing = SyncRequest(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={
            one.member_id: bytes(one.assignment) for one in request.assignments
        },
    )
    try:
        return await coordinator.sync(request.group_id, syncing)
    except Refusal as refusal:
        return SyncGroupResponse(error_code=refusal.code)


def _refuse(
    context: RequestContext[SyncGroupRequest],
    coordinator: GroupCoordinator,
    asked: tuple[Node, ServerConnection],
) -> ErrorCode:
    request = context.request
    names = request.protocol_type, request.protocol_name
    if context.version >= _FIRST_WITH_PROTOCOL and None in names:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    denied = rights_of(*asked).denied(
        Operation.READ, ResourceType.GROUP, request.group_id
    )
    if denied:
        return denied
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return coordinator.refuse(asked[0].node_id, request.group_id)
