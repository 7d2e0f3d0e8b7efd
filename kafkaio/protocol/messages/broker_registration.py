"""BrokerRegistrationRequest and BrokerRegistrationResponse (API key 62), versions 0 to 4."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "Feature",
    "Listener",
]


@dataclass(slots=True, kw_only=True)
class BrokerRegistrationResponse(Response):
    """Versions 0 to 4, API key 62."""

    API_KEY: ClassVar[int] = 62
    NAME: ClassVar[str] = "BrokerRegistrationResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 4)),
        Field("error_code", "int16", (0, 4)),
        Field("broker_epoch", "int64", (0, 4), default=-1),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class Listener(Struct):
    """Part of BrokerRegistrationRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 4)),
        Field("host", "string", (0, 4)),
        Field("port", "uint16", (0, 4)),
        Field("security_protocol", "int16", (0, 4)),
    )

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(slots=True, kw_only=True)
class Feature(Struct):
    """Part of BrokerRegistrationRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 4)),
        Field("min_supported_version", "int16", (0, 4)),
        Field("max_supported_version", "int16", (0, 4)),
    )

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(slots=True, kw_only=True)
class BrokerRegistrationRequest(Request[BrokerRegistrationResponse]):
    """Versions 0 to 4, API key 62."""

    API_KEY: ClassVar[int] = 62
    NAME: ClassVar[str] = "BrokerRegistrationRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 4)),
        Field("cluster_id", "string", (0, 4)),
        Field("incarnation_id", "uuid", (0, 4)),
        Field("listeners", Listener, (0, 4), array=True),
        Field("features", Feature, (0, 4), array=True),
        Field("rack", "string", (0, 4), nullable=(0, 4)),
        Field("is_migrating_zk_broker", "bool", (1, 4)),
        Field("log_dirs", "uuid", (2, 4), array=True, ignorable=True),
        Field("previous_broker_epoch", "int64", (3, 4), default=-1, ignorable=True),
    )

    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: list[UUID] = field(default_factory=list)
    previous_broker_epoch: int = -1

    @classmethod
    def response_type(cls) -> type[BrokerRegistrationResponse]:
        """Return BrokerRegistrationResponse."""
        return BrokerRegistrationResponse
