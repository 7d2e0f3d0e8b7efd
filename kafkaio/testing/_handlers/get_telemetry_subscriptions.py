"""GetTelemetrySubscriptions, version 0 (KIP-714)."""

from __future__ import annotations

from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.node import Node
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._telemetry import client_of


async def handle(
    node: Node,
    header: RequestHeader,
    request: GetTelemetrySubscriptionsRequest,
    connection: ServerConnection,
) -> GetTelemetrySubscriptionsResponse:
    """Answer which metrics are wanted."""
    try:
        return node.broker.telemetry.get(
            request.client_instance_id, client_of(header, connection)
        )
    except Refusal as refusal:
        return GetTelemetrySubscriptionsResponse(error_code=refusal.code)
