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
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.partition import NO_LEADER
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType

_FIRST_WITH_SEVERAL: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1
_KINDS: Final = {
    _GROUP: ResourceType.GROUP,
    _TRANSACTION: ResourceType.TRANSACTIONAL_ID,
}


async def handle(
    node: Node,
    header: RequestHeader,
    request: FindCoordinatorRequest,
    connection: ServerConnection,
) -> FindCoordinatorResponse:
    """Return the coordinators of groups or of transactional ids."""
    if header.request_api_version >= _FIRST_WITH_SEVERAL:
        return FindCoordinatorResponse(
            coordinators=[
                _find(node, request.key_type, key, connection)
                for key in request.coordinator_keys
            ]
        )
    found = _find(node, request.key_type, request.key, connection)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # As Kafka, which writes "NONE" if there is no error.
        error_message=found.error_message or ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(
    node: Node, key_type: int, key: str, connection: ServerConnection
) -> Coordinator:
    kind = _KINDS.get(key_type)
    if kind is not None:
        denied = rights_of(node, connection).denied(Operation.DESCRIBE, kind, key)
        if denied:
            return _none(key, denied, "")
    code = connection.error_for(key)
    if code is not None:
        return _none(key, code, None)
    if kind is None:
        return _none(
            key, ErrorCode.INVALID_REQUEST, f"unknown coordinator type {key_type}"
        )
    if key_type == _GROUP:
        partition = node.cluster.offsets_partition(key)
    else:
        partition = node.cluster.transactions_partition(key)
    if partition.leader == NO_LEADER:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    peer = node.broker.nodes[partition.leader]
    host, port = peer.address(connection)
    return Coordinator(key=key, node_id=peer.node_id, host=host, port=port)


def _none(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
