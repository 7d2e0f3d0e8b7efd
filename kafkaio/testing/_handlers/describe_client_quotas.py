"""DescribeClientQuotas, versions 0 and 1 (KIP-546)."""

from __future__ import annotations

from kafkaio.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._handler import RequestContext, handler, right
from kafkaio.testing._security.acls import Operation, ResourceType


def _refused(
    context: RequestContext[DescribeClientQuotasRequest], refusal: Refusal
) -> DescribeClientQuotasResponse:
    del context
    return DescribeClientQuotasResponse(
        error_code=refusal.code, error_message=refusal.message, entries=None
    )


@handler(
    DescribeClientQuotasRequest,
    right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    refused=_refused,
)
async def handle(
    context: RequestContext[DescribeClientQuotasRequest],
) -> DescribeClientQuotasResponse:
    """List the quotas that a filter matches."""
    components = [
        (one.entity_type, one.match_type, one.match)
        for one in context.request.components
    ]
    found = context.cluster.quotas.matching(components, strict=context.request.strict)
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
