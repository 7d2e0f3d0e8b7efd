"""DeleteAclsRequest and DeleteAclsResponse (API key 31), versions 1 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DeleteAclsFilter",
    "DeleteAclsFilterResult",
    "DeleteAclsMatchingAcl",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
]


@dataclass(slots=True, kw_only=True)
class DeleteAclsMatchingAcl(Struct):
    """Part of DeleteAclsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("resource_type", "int8", (1, 3)),
        Field("resource_name", "string", (1, 3)),
        Field("pattern_type", "int8", (1, 3), default=3),
        Field("principal", "string", (1, 3)),
        Field("host", "string", (1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilterResult(Struct):
    """Part of DeleteAclsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("matching_acls", DeleteAclsMatchingAcl, (1, 3), array=True),
    )

    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponse(Response):
    """Versions 1 to 3, API key 31."""

    API_KEY: ClassVar[int] = 31
    NAME: ClassVar[str] = "DeleteAclsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 3)),
        Field("filter_results", DeleteAclsFilterResult, (1, 3), array=True),
    )

    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilter(Struct):
    """Part of DeleteAclsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type_filter", "int8", (1, 3)),
        Field("resource_name_filter", "string", (1, 3), nullable=(1, 3)),
        Field("pattern_type_filter", "int8", (1, 3), default=3),
        Field("principal_filter", "string", (1, 3), nullable=(1, 3)),
        Field("host_filter", "string", (1, 3), nullable=(1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteAclsRequest(Request[DeleteAclsResponse]):
    """Versions 1 to 3, API key 31."""

    API_KEY: ClassVar[int] = 31
    NAME: ClassVar[str] = "DeleteAclsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("filters", DeleteAclsFilter, (1, 3), array=True),
    )

    filters: list[DeleteAclsFilter] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DeleteAclsResponse]:
        """Return DeleteAclsResponse."""
        return DeleteAclsResponse
