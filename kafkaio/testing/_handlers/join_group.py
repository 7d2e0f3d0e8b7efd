"""JoinGroup, versions 0 to 9: join a group by the classic protocol."""

from __future__ import annotations

from typing import Final

from kafkaio._runtime.clock import random_uuid
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic_member import JoinRequest
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._groups import for_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation

#: KIP-559.
_FIRST_WITH_NULL: Final = 7


def _check_member(context: RequestContext[JoinGroupRequest]) -> None:
    """Check the session timeout, and that an id is of a group that exists."""
    request = context.request
    coordinator = coordinator_of(context.cluster)
    config, timeout = coordinator.config, request.session_timeout_ms / 1000
    if not config.min_session_timeout <= timeout <= config.max_session_timeout:
        raise Refusal(ErrorCode.INVALID_SESSION_TIMEOUT)
    if request.member_id and coordinator.find(request.group_id) is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)


def _refused(
    context: RequestContext[JoinGroupRequest], refusal: Refusal
) -> JoinGroupResponse:
    is_denied = refusal.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    member_id = "" if is_denied else context.request.member_id
    return _with_protocol(context, _failed(refusal.code, member_id))


def _failed(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name=None, member_id=member_id)


@handler(JoinGroupRequest, for_group(Operation.READ), _check_member, refused=_refused)
async def handle(context: RequestContext[JoinGroupRequest]) -> JoinGroupResponse:
    """Join a group; the response waits until the other members have joined."""
    coordinator = coordinator_of(context.cluster)
    try:
        response = await coordinator.join(context.request.group_id, _joining(context))
    except Refusal as refusal:
        # The group refuses without the member's id, unlike the checks before it.
        response = _failed(refusal.code, "")
    return _with_protocol(context, response)


def _with_protocol(
    context: RequestContext[JoinGroupRequest], response: JoinGroupResponse
) -> JoinGroupResponse:
    """Replace a null protocol by an empty one in the versions that have no null."""
    if context.version < _FIRST_WITH_NULL and response.protocol_name is None:
        response.protocol_name = ""
    return response


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
