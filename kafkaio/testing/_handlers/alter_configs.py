"""AlterConfigs, versions 0 to 2 (KIP-133): replaces all configs of a resource."""

from __future__ import annotations

from kafkaio.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._configs import change, check_asked
from kafkaio.testing._handlers._handler import RequestContext, handler


@handler(AlterConfigsRequest, by_partition=True)
async def handle(context: RequestContext[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Replace the configs of resources; a config not named returns to its default."""
    request, node = context.request, context.node
    response = AlterConfigsResponse()
    for asked in request.resources:
        result = AlterConfigsResourceResponse(
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            error_message=None,
        )
        try:
            context.connection.check(asked.resource_name)
            names = {config.name for config in asked.configs}
            check_asked(context, asked, request.resources, names)
            values = {one.name: one.value or "" for one in asked.configs}
            change(node, asked, values, validate_only=request.validate_only)
        except Refusal as refusal:
            refusal.write_to(result)
        response.responses.append(result)
    return response
