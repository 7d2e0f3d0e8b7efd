"""IncrementalAlterConfigsRequest and IncrementalAlterConfigsResponse (API key 44), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterableConfig",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


@dataclass(slots=True, kw_only=True)
class AlterConfigsResourceResponse(Struct):
    """Part of IncrementalAlterConfigsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("resource_type", "int8", (0, 1)),
        Field("resource_name", "string", (0, 1)),
    )

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResponse(Response):
    """Versions 0 to 1, API key 44."""

    API_KEY: ClassVar[int] = 44
    NAME: ClassVar[str] = "IncrementalAlterConfigsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("responses", AlterConfigsResourceResponse, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterableConfig(Struct):
    """Part of IncrementalAlterConfigsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("config_operation", "int8", (0, 1)),
        Field("value", "string", (0, 1), nullable=(0, 1)),
    )

    name: str = ""
    config_operation: int = 0
    value: str | None = field(default="", repr=False)


@dataclass(slots=True, kw_only=True)
class AlterConfigsResource(Struct):
    """Part of IncrementalAlterConfigsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (0, 1)),
        Field("resource_name", "string", (0, 1)),
        Field("configs", AlterableConfig, (0, 1), array=True),
    )

    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    """Versions 0 to 1, API key 44."""

    API_KEY: ClassVar[int] = 44
    NAME: ClassVar[str] = "IncrementalAlterConfigsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, (0, 1), array=True),
        Field("validate_only", "bool", (0, 1)),
    )

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[IncrementalAlterConfigsResponse]:
        """Return IncrementalAlterConfigsResponse."""
        return IncrementalAlterConfigsResponse
