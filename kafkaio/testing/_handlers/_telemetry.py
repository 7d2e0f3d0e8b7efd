"""The client of a request, for the APIs of telemetry."""

from __future__ import annotations

from kafkaio.protocol._message import Request, Response
from kafkaio.testing._broker.telemetry import TelemetryClient
from kafkaio.testing._handlers._handler import RequestContext


def client_of(context: RequestContext[Request[Response]]) -> TelemetryClient:
    """The client that sent a request, by what a subscription can match."""
    client_id = context.header.client_id or ""
    return TelemetryClient(client_id, address=context.connection.peer.host)
