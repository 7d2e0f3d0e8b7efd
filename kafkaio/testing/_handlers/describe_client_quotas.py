"""DescribeClientQuotas, versions 0 and 1 (KIP-546)."""

from __future__ import annotations

from kafkaio.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._rights import rights_of
from kafkaio.testing._security.acls import Operation, ResourceType


async def handle(
    node: Node,
    header: RequestHeader,
    request: DescribeClientQuotasRequest,
    connection: ServerConnection,
) -> DescribeClientQuotasResponse:
    """List the quotas that a filter matches."""
    del header
    components = [
        (one.entity_type, one.match_type, one.match) for one in request.components
    ]
    denied = rights_of(node, connection).denied(
        Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER
    )
    if denied:
        return DescribeClientQuotasResponse(
            error_code=denied, error_message=None, entries=None
        )
    try:
        found = node.cluster.quotas.matching(components, strict=request.strict)
    except Refusal as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.code, error_message=refusal.message, entries=None
        )
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity
                ],
                values=[
                    ValueData(key=key, value=value) for key, value in values.items()
                ],
            )
            for entity, values in found
        ]
    )
