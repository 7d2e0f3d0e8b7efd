"""Heartbeat, versions 0 to 4: the heartbeats of classic members."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._handlers._groups import for_group
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation


def _refused(
    context: RequestContext[HeartbeatRequest], refusal: Refusal
) -> HeartbeatResponse:
    del context
    # As Kafka: the session of a member begins when its group is loaded.
    if refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=refusal.code)


@handler(HeartbeatRequest, for_group(Operation.READ), refused=_refused)
async def handle(context: RequestContext[HeartbeatRequest]) -> HeartbeatResponse:
    """Extend the session of a member."""
    request = context.request
    return HeartbeatResponse(
        error_code=coordinator_of(context.cluster).heartbeat(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
        )
    )
