"""AlterConfigsRequest and AlterConfigsResponse (API key 33), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
]


@dataclass(slots=True, kw_only=True)
class AlterConfigsResourceResponse(Struct):
    """Part of AlterConfigsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
        Field("resource_type", "int8", (0, 2)),
        Field("resource_name", "string", (0, 2)),
    )

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


@dataclass(slots=True, kw_only=True)
class AlterConfigsResponse(Response):
    """Versions 0 to 2, API key 33."""

    API_KEY: ClassVar[int] = 33
    NAME: ClassVar[str] = "AlterConfigsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("responses", AlterConfigsResourceResponse, (0, 2), array=True),
    )

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterableConfig(Struct):
    """Part of AlterConfigsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("value", "string", (0, 2), nullable=(0, 2)),
    )

    name: str = ""
    value: str | None = field(default="", repr=False)


@dataclass(slots=True, kw_only=True)
class AlterConfigsResource(Struct):
    """Part of AlterConfigsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (0, 2)),
        Field("resource_name", "string", (0, 2)),
        Field("configs", AlterableConfig, (0, 2), array=True),
    )

    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequest(Request[AlterConfigsResponse]):
    """Versions 0 to 2, API key 33."""

    API_KEY: ClassVar[int] = 33
    NAME: ClassVar[str] = "AlterConfigsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, (0, 2), array=True),
        Field("validate_only", "bool", (0, 2)),
    )

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[AlterConfigsResponse]:
        """Return AlterConfigsResponse."""
        return AlterConfigsResponse
