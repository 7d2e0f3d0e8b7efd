"""PushTelemetry, version 0 (KIP-714)."""

from __future__ import annotations

from kafkaio.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._telemetry import client_of


async def handle(
    node: Node,
    header: RequestHeader,
    request: PushTelemetryRequest,
    connection: ServerConnection,
) -> PushTelemetryResponse:
    """Keep the metrics that a client pushes."""
    try:
        node.broker.telemetry.push(request, client_of(header, connection))
    except Refusal as refusal:
        return PushTelemetryResponse(error_code=refusal.code)
    return PushTelemetryResponse()
