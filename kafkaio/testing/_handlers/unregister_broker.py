"""UnregisterBroker, version 0 (KIP-500)."""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import (
    RequestContext,
    handler,
    right,
    with_message,
)
from kafkaio.testing._security.acls import Operation, ResourceType


@handler(
    UnregisterBrokerRequest,
    right(Operation.ALTER, ResourceType.CLUSTER, explained=True),
    refused=with_message,
)
async def handle(
    context: RequestContext[UnregisterBrokerRequest],
) -> UnregisterBrokerResponse:
    """Forget a node, until it is started again."""
    node_id, cluster = context.request.broker_id, context.cluster
    if node_id not in context.node.broker.nodes or node_id in cluster.unregistered:
        raise Refusal(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {node_id} is not currently registered",
        )
    cluster.unregister(node_id)
    return UnregisterBrokerResponse()
