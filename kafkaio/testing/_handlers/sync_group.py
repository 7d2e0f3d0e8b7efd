"""SyncGroup, versions 0 to 5: distribute the leader's assignment."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.classic_member import SyncRequest
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._groups import for_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation

#: KIP-559.
_FIRST_WITH_PROTOCOL = 5


def _check_protocol(context: RequestContext[SyncGroupRequest]) -> None:
    names = context.request.protocol_type, context.request.protocol_name
    if context.version >= _FIRST_WITH_PROTOCOL and None in names:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _refused(
    context: RequestContext[SyncGroupRequest], refusal: Refusal
) -> SyncGroupResponse:
    del context
    code = refusal.code
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # As Kafka: a member that joined before the coordinator moved has to join again.
        code = ErrorCode.REBALANCE_IN_PROGRESS
    return SyncGroupResponse(error_code=code)


@handler(SyncGroupRequest, _check_protocol, for_group(Operation.READ), refused=_refused)
async def handle(context: RequestContext[SyncGroupRequest]) -> SyncGroupResponse:
    """Return a member's assignment; a follower waits for the leader's request."""
    request = context.request
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
    return await coordinator_of(context.cluster).sync(request.group_id, syncing)
