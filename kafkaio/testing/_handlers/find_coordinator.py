"""FindCoordinator, versions 0 to 6, for groups and transactional ids (KIP-699).

A group belongs to the leader of the partition of ``__consumer_offsets`` that its name
hashes to, a transactional id to that of ``__transaction_state``. Share groups have no
coordinator here.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaio.testing._broker.partition import NO_LEADER
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._security.acls import Operation, ResourceType

#: KIP-699.
_FIRST_WITH_SEVERAL: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1
_KINDS: Final = {
    _GROUP: ResourceType.GROUP,
    _TRANSACTION: ResourceType.TRANSACTIONAL_ID,
}


@handler(FindCoordinatorRequest, by_partition=True)
async def handle(
    context: RequestContext[FindCoordinatorRequest],
) -> FindCoordinatorResponse:
    """Return the coordinators of groups or of transactional ids."""
    request = context.request
    if context.version >= _FIRST_WITH_SEVERAL:
        return FindCoordinatorResponse(
            coordinators=[
                _find(context, request.key_type, key)
                for key in request.coordinator_keys
            ]
        )
    found = _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # As Kafka, which writes "NONE" if no error occurred.
        error_message=found.error_message or ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(
    context: RequestContext[FindCoordinatorRequest], key_type: int, key: str
) -> Coordinator:
    kind = _KINDS.get(key_type)
    if kind is not None:
        denied = context.rights.denied(Operation.DESCRIBE, kind, key)
        if denied:
            return _none(key, denied, "")
    code = context.connection.error_for(key)
    if code is not None:
        return _none(key, code, None)
    if kind is None:
        return _none(
            key, ErrorCode.INVALID_REQUEST, f"unknown coordinator type {key_type}"
        )
    if key_type == _GROUP:
        partition = context.cluster.offsets_partition(key)
    else:
        partition = context.cluster.transactions_partition(key)
    # As for any partition without a leader: the client asks again later.
    if partition.leader == NO_LEADER:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    peer = context.node.broker.nodes[partition.leader]
    host, port = peer.address(context.connection)
    return Coordinator(key=key, node_id=peer.node_id, host=host, port=port)


def _none(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
