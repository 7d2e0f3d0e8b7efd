"""PushTelemetryRequest and PushTelemetryResponse (API key 72), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response

__all__ = [
    "PushTelemetryRequest",
    "PushTelemetryResponse",
]


@dataclass(slots=True, kw_only=True)
class PushTelemetryResponse(Response):
    """Versions 0 to 0, API key 72."""

    API_KEY: ClassVar[int] = 72
    NAME: ClassVar[str] = "PushTelemetryResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class PushTelemetryRequest(Request[PushTelemetryResponse]):
    """Versions 0 to 0, API key 72."""

    API_KEY: ClassVar[int] = 72
    NAME: ClassVar[str] = "PushTelemetryRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("client_instance_id", "uuid", (0, 0)),
        Field("subscription_id", "int32", (0, 0)),
        Field("terminating", "bool", (0, 0)),
        Field("compression_type", "int8", (0, 0)),
        Field("metrics", "bytes", (0, 0)),
    )

    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""

    @classmethod
    def response_type(cls) -> type[PushTelemetryResponse]:
        """Return PushTelemetryResponse."""
        return PushTelemetryResponse
