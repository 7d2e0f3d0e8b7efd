"""ListConfigResources, versions 0 and 1 (KIP-1000, KIP-1142).

Version 0 lists subscriptions of client metrics only.
"""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafkaio.testing._broker.configs import BROKER, CLIENT_METRICS, GROUP
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType

_TOPIC: Final = 2
_LOGGER: Final = 8
_TYPES: Final = (_TOPIC, BROKER, _LOGGER, CLIENT_METRICS, GROUP)


@handler(
    ListConfigResourcesRequest,
    right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
)
async def handle(
    context: RequestContext[ListConfigResourcesRequest],
) -> ListConfigResourcesResponse:
    """List what has configs."""
    node = context.node
    types = set(context.request.resource_types) or set(_TYPES)
    if context.version == 0:
        # Its only type; the field came with version 1.
        types = {CLIENT_METRICS}
    if not types <= set(_TYPES):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    nodes = [str(node_id) for node_id in node.broker.nodes]
    names = {
        _TOPIC: [topic.name for topic in context.cluster.visible()],
        BROKER: nodes,
        _LOGGER: nodes,
        GROUP: _saved(node, GROUP),
        CLIENT_METRICS: _saved(node, CLIENT_METRICS),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_type=kind, resource_name=name)
            for kind in sorted(types)
            for name in names.get(kind, ())
        ]
    )


def _saved(node: BrokerNode, wanted: int) -> list[str]:
    return [name for kind, name, _ in node.cluster.configs.saved() if kind == wanted]
