"""DescribeAclsRequest and DescribeAclsResponse (API key 29), versions 1 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AclDescription",
    "DescribeAclsRequest",
    "DescribeAclsResource",
    "DescribeAclsResponse",
]


@dataclass(slots=True, kw_only=True)
class AclDescription(Struct):
    """Part of DescribeAclsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("principal", "string", (1, 3)),
        Field("host", "string", (1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeAclsResource(Struct):
    """Part of DescribeAclsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (1, 3)),
        Field("resource_name", "string", (1, 3)),
        Field("pattern_type", "int8", (1, 3), default=3),
        Field("acls", AclDescription, (1, 3), array=True),
    )

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponse(Response):
    """Versions 1 to 3, API key 29."""

    API_KEY: ClassVar[int] = 29
    NAME: ClassVar[str] = "DescribeAclsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 3)),
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("resources", DescribeAclsResource, (1, 3), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeAclsRequest(Request[DescribeAclsResponse]):
    """Versions 1 to 3, API key 29."""

    API_KEY: ClassVar[int] = 29
    NAME: ClassVar[str] = "DescribeAclsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
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

    @classmethod
    def response_type(cls) -> type[DescribeAclsResponse]:
        """Return DescribeAclsResponse."""
        return DescribeAclsResponse
