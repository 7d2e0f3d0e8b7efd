"""PushTelemetry, version 0 (KIP-714)."""

from __future__ import annotations

from kafkaio.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kafkaio.testing._handlers._handler import RequestContext, handler
from kafkaio.testing._handlers._telemetry import client_of


@handler(PushTelemetryRequest)
async def handle(
    context: RequestContext[PushTelemetryRequest],
) -> PushTelemetryResponse:
    """Keep the metrics that a client pushes."""
    context.node.broker.telemetry.push(context.request, client_of(context))
    return PushTelemetryResponse()
