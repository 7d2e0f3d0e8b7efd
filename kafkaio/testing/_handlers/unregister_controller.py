"""UnregisterController, version 0 (Kafka 4.4).

Every node is a controller. One that is up registers again at once, as in Kafka.
"""

from __future__ import annotations

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
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
    UnregisterControllerRequest,
    right(Operation.ALTER, ResourceType.CLUSTER, explained=True),
    refused=with_message,
)
async def handle(
    context: RequestContext[UnregisterControllerRequest],
) -> UnregisterControllerResponse:
    """Forget the controller of a node, until the node is started again."""
    node_id, cluster = context.request.controller_id, context.cluster
    if node_id == cluster.controller_id:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "Controller cannot unregister itself while it is active.",
        )
    known = context.node.broker.nodes.keys() - cluster.unregistered_controllers
    if node_id not in known:
        raise Refusal(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"Controller ID {node_id} is not currently registered.",
        )
    if node_id not in cluster.live:
        cluster.unregistered_controllers.add(node_id)
    return UnregisterControllerResponse(error_message="")
