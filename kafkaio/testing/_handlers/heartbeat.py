"""Heartbeat, versions 0 to 4: the heartbeats of classic members."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(HeartbeatRequest)
async def handle(context: RequestContext[HeartbeatRequest]) -> HeartbeatResponse:
    """Serve one request."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    denied = context.rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
    if denied:
        return HeartbeatResponse(error_code=denied)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator.refuse(context.node.node_id, request.group_id)
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # As Kafka: the session of a member begins when its group is loaded.
        return HeartbeatResponse()
    if error:
        return HeartbeatResponse(error_code=error)
    try:
        error = coordinator.heartbeat(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
        )
    except Refusal as refusal:
        error = refusal.code
    return HeartbeatResponse(error_code=error)
