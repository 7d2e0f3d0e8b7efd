"""DescribeCluster, versions 0 to 2 (KIP-700, KIP-919, KIP-1073)."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, with_message

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@handler(DescribeClusterRequest, refused=with_message)
async def handle(
    context: RequestContext[DescribeClusterRequest],
) -> DescribeClusterResponse:
    """Return the nodes that are up; fenced ones, too, if the client asks for them."""
    request = context.request
    cluster = context.cluster
    if request.endpoint_type != _BROKERS:
        is_known = request.endpoint_type == _CONTROLLERS
        raise Refusal(
            (
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if is_known
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            ),
            "The request was sent to an endpoint of type BROKER",
        )
    known = context.node.broker.nodes.keys() - cluster.unregistered
    # A node that is down is registered, and fenced.
    ids = sorted(known if request.include_fenced_brokers else cluster.live)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        cluster_authorized_operations=context.rights.cluster_operations(
            is_asked=request.include_cluster_authorized_operations
        ),
        brokers=[_broker(context, context.node.broker.nodes[one]) for one in ids],
    )


def _broker(
    context: RequestContext[DescribeClusterRequest], peer: BrokerNode
) -> DescribeClusterBroker:
    host, port = peer.address(context.connection)
    return DescribeClusterBroker(
        broker_id=peer.node_id,
        host=host,
        port=port,
        rack=peer.rack,
        is_fenced=peer.node_id not in peer.cluster.live,
    )
