"""ApiVersionsRequest and ApiVersionsResponse (API key 18), versions 0 to 4."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "FinalizedFeatureKey",
    "SupportedFeatureKey",
]


@dataclass(slots=True, kw_only=True)
class ApiVersion(Struct):
    """Part of ApiVersionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("api_key", "int16", (0, 4)),
        Field("min_version", "int16", (0, 4)),
        Field("max_version", "int16", (0, 4)),
    )

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True)
class SupportedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 4)),
        Field("min_version", "int16", (3, 4)),
        Field("max_version", "int16", (3, 4)),
    )

    name: str = ""
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True)
class FinalizedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 4)),
        Field("max_version_level", "int16", (3, 4)),
        Field("min_version_level", "int16", (3, 4)),
    )

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponse(Response):
    """Versions 0 to 4, API key 18."""

    API_KEY: ClassVar[int] = 18
    NAME: ClassVar[str] = "ApiVersionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 4)),
        Field("api_keys", ApiVersion, (0, 4), array=True),
        Field("throttle_time_ms", "int32", (1, 4), ignorable=True),
        Field(
            "supported_features",
            SupportedFeatureKey,
            (3, 4),
            array=True,
            tag=0,
            tagged=(3, 4),
            ignorable=True,
        ),
        Field(
            "finalized_features_epoch",
            "int64",
            (3, 4),
            tag=1,
            tagged=(3, 4),
            default=-1,
            ignorable=True,
        ),
        Field(
            "finalized_features",
            FinalizedFeatureKey,
            (3, 4),
            array=True,
            tag=2,
            tagged=(3, 4),
            ignorable=True,
        ),
        Field(
            "zk_migration_ready", "bool", (3, 4), tag=3, tagged=(3, 4), ignorable=True
        ),
    )

    error_code: int = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = field(default_factory=list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list)
    zk_migration_ready: bool = False


@dataclass(slots=True, kw_only=True)
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    """Versions 0 to 4, API key 18."""

    API_KEY: ClassVar[int] = 18
    NAME: ClassVar[str] = "ApiVersionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", (3, 4), ignorable=True),
        Field("client_software_version", "string", (3, 4), ignorable=True),
    )

    client_software_name: str = ""
    client_software_version: str = ""

    @classmethod
    def response_type(cls) -> type[ApiVersionsResponse]:
        """Return ApiVersionsResponse."""
        return ApiVersionsResponse
