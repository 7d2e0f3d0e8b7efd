"""DescribeConfigsRequest and DescribeConfigsResponse (API key 32), versions 1 to 4."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


@dataclass(slots=True, kw_only=True)
class DescribeConfigsSynonym(Struct):
    """Part of DescribeConfigsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 4)),
        Field("value", "string", (1, 4), nullable=(1, 4)),
        Field("source", "int8", (1, 4)),
    )

    name: str = ""
    value: str | None = ""
    source: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResourceResult(Struct):
    """Part of DescribeConfigsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 4)),
        Field("value", "string", (1, 4), nullable=(1, 4)),
        Field("read_only", "bool", (1, 4)),
        Field("config_source", "int8", (1, 4), default=-1, ignorable=True),
        Field("is_sensitive", "bool", (1, 4)),
        Field("synonyms", DescribeConfigsSynonym, (1, 4), array=True, ignorable=True),
        Field("config_type", "int8", (3, 4), ignorable=True),
        Field("documentation", "string", (3, 4), nullable=(3, 4), ignorable=True),
    )

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    config_type: int = 0
    documentation: str | None = ""


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResult(Struct):
    """Part of DescribeConfigsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 4)),
        Field("error_message", "string", (1, 4), nullable=(1, 4)),
        Field("resource_type", "int8", (1, 4)),
        Field("resource_name", "string", (1, 4)),
        Field("configs", DescribeConfigsResourceResult, (1, 4), array=True),
    )

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponse(Response):
    """Versions 1 to 4, API key 32."""

    API_KEY: ClassVar[int] = 32
    NAME: ClassVar[str] = "DescribeConfigsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 4)),
        Field("results", DescribeConfigsResult, (1, 4), array=True),
    )

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResource(Struct):
    """Part of DescribeConfigsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (1, 4)),
        Field("resource_name", "string", (1, 4)),
        Field("configuration_keys", "string", (1, 4), array=True, nullable=(1, 4)),
    )

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """Versions 1 to 4, API key 32."""

    API_KEY: ClassVar[int] = 32
    NAME: ClassVar[str] = "DescribeConfigsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resources", DescribeConfigsResource, (1, 4), array=True),
        Field("include_synonyms", "bool", (1, 4)),
        Field("include_documentation", "bool", (3, 4)),
    )

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False

    @classmethod
    def response_type(cls) -> type[DescribeConfigsResponse]:
        """Return DescribeConfigsResponse."""
        return DescribeConfigsResponse
