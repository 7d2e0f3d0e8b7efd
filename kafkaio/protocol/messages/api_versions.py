"""ApiVersionsRequest and ApiVersionsResponse (API key 18), versions 0 to 5."""

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
        Field("api_key", "int16", (0, 5)),
        Field("min_version", "int16", (0, 5)),
        Field("max_version", "int16", (0, 5)),
    )

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True)
class SupportedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 5)),
        Field("min_version", "int16", (3, 5)),
        Field("max_version", "int16", (3, 5)),
    )

    name: str = ""
    min_version: int = 0
    max_version: int = 0


@dataclass(slots=True, kw_only=True)
class FinalizedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 5)),
        Field("max_version_level", "int16", (3, 5)),
        Field("min_version_level", "int16", (3, 5)),
    )

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponse(Response):
    """Versions 0 to 5, API key 18."""

    API_KEY: ClassVar[int] = 18
    NAME: ClassVar[str] = "ApiVersionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 5)),
        Field("api_keys", ApiVersion, (0, 5), array=True),
        Field("throttle_time_ms", "int32", (1, 5), ignorable=True),
        Field(
            "supported_features",
            SupportedFeatureKey,
            (3, 5),
            array=True,
            tag=0,
            tagged=(3, 5),
            ignorable=True,
        ),
        Field(
            "finalized_features_epoch",
            "int64",
            (3, 5),
            tag=1,
            tagged=(3, 5),
            default=-1,
            ignorable=True,
        ),
        Field(
            "finalized_features",
            FinalizedFeatureKey,
            (3, 5),
            array=True,
            tag=2,
            tagged=(3, 5),
            ignorable=True,
        ),
        Field(
            "zk_migration_ready", "bool", (3, 5), tag=3, tagged=(3, 5), ignorable=True
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
    """Versions 0 to 5, API key 18."""

    API_KEY: ClassVar[int] = 18
    NAME: ClassVar[str] = "ApiVersionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", (3, 5), ignorable=True),
        Field("client_software_version", "string", (3, 5), ignorable=True),
        Field(
            "cluster_id",
            "string",
            (5, 5),
            nullable=(5, 5),
            default=None,
            ignorable=True,
        ),
        Field("node_id", "int32", (5, 5), default=-1, ignorable=True),
    )

    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1

    @classmethod
    def response_type(cls) -> type[ApiVersionsResponse]:
        """Return ApiVersionsResponse."""
        return ApiVersionsResponse
