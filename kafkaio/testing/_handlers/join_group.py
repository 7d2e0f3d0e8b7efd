"""JoinGroup, versions 0 to 9: join a group by the classic protocol."""

from __future__ import annotations

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic_member import JoinRequest
from kafkaio.testing._groups.coordinator import GroupCoordinator, coordinator_of
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(JoinGroupRequest)
async def handle(context: RequestContext[JoinGroupRequest]) -> JoinGroupResponse:
    """Serve one request; the answer waits until the other members have joined."""
    request = context.request
    version = context.version
    coordinator = coordinator_of(context.cluster)
    denied = context.rights.denied(Operation.READ, ResourceType.GROUP, request.group_id)
    error = _refuse(coordinator, context.node.node_id, request)
    if denied:
        answer = _failed(denied, "")
    elif error:
        answer = _failed(error, request.member_id)
    else:
        joining = _joining(context)
        try:
            answer = await coordinator.join(request.group_id, joining)
        except Refusal as refusal:
            answer = _failed(refusal.code, "")
    if version < 7 and answer.protocol_name is None:
        answer.protocol_name = ""
    return answer


def _failed(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)


def _refuse(
    coordinator: GroupCoordinator, node_id: int, request: JoinGroupRequest
) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    error = coordinator.refuse(node_id, request.group_id)
    if error:
        return error
    config, timeout = coordinator.config, request.session_timeout_ms / 1000
    if not config.min_session_timeout <= timeout <= config.max_session_timeout:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if request.member_id and coordinator.find(request.group_id) is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def _joining(context: RequestContext[JoinGroupRequest]) -> JoinRequest:
    request = context.request
    version = context.version
    # In version 0 the session timeout is also the rebalance timeout.
    rebalance_ms = request.rebalance_timeout_ms if version else -1
    if rebalance_ms < 0:
        rebalance_ms = request.session_timeout_ms
    return JoinRequest(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.header.client_id or "",
        client_host=f"/{context.connection.client_host}",
        session_timeout=request.session_timeout_ms / 1000,
        rebalance_timeout=rebalance_ms / 1000,
        protocol_type=request.protocol_type,
        protocols=tuple((one.name, bytes(one.metadata)) for one in request.protocols),
        new_id=str(random_uuid()),
        knows_member_id_required=version >= 4,
        may_skip_assignment=version >= 9,
    )
