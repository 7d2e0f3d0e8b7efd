"""Heartbeat, versions 0 to 4: the heartbeats of classic members."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: Request[Response],
    connection: ServerConnection,
) -> HeartbeatResponse:
    """Serve one request."""
    del header
    assert isinstance(request, HeartbeatRequest)
    coordinator = coordinator_of(node.cluster)
    denied = rights_of(node, connection).denied(
        Operation.READ, ResourceType.GROUP, request.group_id
    )
    if denied:
        return HeartbeatResponse(error_code=denied)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator.refuse(node.node_id, request.group_id)
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
