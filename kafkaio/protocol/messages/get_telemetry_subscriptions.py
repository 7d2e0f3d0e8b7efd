"""GetTelemetrySubscriptionsRequest and GetTelemetrySubscriptionsResponse (API key 71), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response

__all__ = [
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
]


@dataclass(slots=True, kw_only=True)
class GetTelemetrySubscriptionsResponse(Response):
    """Versions 0 to 0, API key 71."""

    API_KEY: ClassVar[int] = 71
    NAME: ClassVar[str] = "GetTelemetrySubscriptionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("client_instance_id", "uuid", (0, 0)),
        Field("subscription_id", "int32", (0, 0)),
        Field("accepted_compression_types", "int8", (0, 0), array=True),
        Field("push_interval_ms", "int32", (0, 0)),
        Field("telemetry_max_bytes", "int32", (0, 0)),
        Field("delta_temporality", "bool", (0, 0)),
        Field("requested_metrics", "string", (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = field(default_factory=list)
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    """Versions 0 to 0, API key 71."""

    API_KEY: ClassVar[int] = 71
    NAME: ClassVar[str] = "GetTelemetrySubscriptionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("client_instance_id", "uuid", (0, 0)),)

    client_instance_id: UUID = ZERO_UUID

    @classmethod
    def response_type(cls) -> type[GetTelemetrySubscriptionsResponse]:
        """Return GetTelemetrySubscriptionsResponse."""
        return GetTelemetrySubscriptionsResponse
