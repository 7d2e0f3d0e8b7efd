"""What the APIs of telemetry share: who the client is."""

from __future__ import annotations

from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.connection import ServerConnection
from kafkaio.testing._broker.telemetry import TelemetryClient


def client_of(header: RequestHeader, connection: ServerConnection) -> TelemetryClient:
    """The client that sent a request, by what a subscription can match."""
    return TelemetryClient(header.client_id or "", address=connection.peer.host)
