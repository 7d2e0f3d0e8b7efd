"""ListConfigResourcesRequest and ListConfigResourcesResponse (API key 74), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ConfigResource",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
]


@dataclass(slots=True, kw_only=True)
class ConfigResource(Struct):
    """Part of ListConfigResourcesResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_name", "string", (0, 1)),
        Field("resource_type", "int8", (1, 1), default=16, ignorable=True),
    )

    resource_name: str = ""
    resource_type: int = 16


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesResponse(Response):
    """Versions 0 to 1, API key 74."""

    API_KEY: ClassVar[int] = 74
    NAME: ClassVar[str] = "ListConfigResourcesResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("config_resources", ConfigResource, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    """Versions 0 to 1, API key 74."""

    API_KEY: ClassVar[int] = 74
    NAME: ClassVar[str] = "ListConfigResourcesRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_types", "int8", (1, 1), array=True),
    )

    resource_types: list[int] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ListConfigResourcesResponse]:
        """Return ListConfigResourcesResponse."""
        return ListConfigResourcesResponse
