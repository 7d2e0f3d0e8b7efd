"""GetTelemetrySubscriptions, version 0 (KIP-714)."""

from __future__ import annotations

from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._telemetry import client_of


@handler(GetTelemetrySubscriptionsRequest)
async def handle(
    context: RequestContext[GetTelemetrySubscriptionsRequest],
) -> GetTelemetrySubscriptionsResponse:
    """Answer which metrics are wanted."""
    return context.node.broker.telemetry.get(
        context.request.client_instance_id, client_of(context)
    )
