"""ControllerRegistrationRequest and ControllerRegistrationResponse (API key 70), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "Feature",
    "Listener",
]


@dataclass(slots=True, kw_only=True)
class ControllerRegistrationResponse(Response):
    """Versions 0 to 0, API key 70."""

    API_KEY: ClassVar[int] = 70
    NAME: ClassVar[str] = "ControllerRegistrationResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class Listener(Struct):
    """Part of ControllerRegistrationRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
        Field("security_protocol", "int16", (0, 0)),
    )

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(slots=True, kw_only=True)
class Feature(Struct):
    """Part of ControllerRegistrationRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(slots=True, kw_only=True)
class ControllerRegistrationRequest(Request[ControllerRegistrationResponse]):
    """Versions 0 to 0, API key 70."""

    API_KEY: ClassVar[int] = 70
    NAME: ClassVar[str] = "ControllerRegistrationRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", (0, 0)),
        Field("incarnation_id", "uuid", (0, 0)),
        Field("zk_migration_ready", "bool", (0, 0)),
        Field("listeners", Listener, (0, 0), array=True),
        Field("features", Feature, (0, 0), array=True),
    )

    controller_id: int = 0
    incarnation_id: UUID = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ControllerRegistrationResponse]:
        """Return ControllerRegistrationResponse."""
        return ControllerRegistrationResponse
