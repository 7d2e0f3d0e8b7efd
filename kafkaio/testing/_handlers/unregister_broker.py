"""UnregisterBroker, version 0 (KIP-500)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: UnregisterBrokerRequest,
    connection: ServerConnection,
) -> UnregisterBrokerResponse:
    """Forget a node, until it is started again."""
    del header
    denied = rights_of(node, connection).denied(Operation.ALTER, ResourceType.CLUSTER)
    if denied:
        return UnregisterBrokerResponse(
            error_code=denied, error_message="Cluster authorization failed."
        )
    node_id, cluster = request.broker_id, node.cluster
    if node_id not in node.broker.nodes or node_id in cluster.unregistered:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {node_id} is not currently registered",
        )
    cluster.unregister(node_id)
    return UnregisterBrokerResponse()
