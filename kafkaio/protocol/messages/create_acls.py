"""CreateAclsRequest and CreateAclsResponse (API key 30), versions 1 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AclCreation",
    "AclCreationResult",
    "CreateAclsRequest",
    "CreateAclsResponse",
]


@dataclass(slots=True, kw_only=True)
class AclCreationResult(Struct):
    """Part of CreateAclsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
    )

    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class CreateAclsResponse(Response):
    """Versions 1 to 3, API key 30."""

    API_KEY: ClassVar[int] = 30
    NAME: ClassVar[str] = "CreateAclsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 3)),
        Field("results", AclCreationResult, (1, 3), array=True),
    )

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AclCreation(Struct):
    """Part of CreateAclsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (1, 3)),
        Field("resource_name", "string", (1, 3)),
        Field("resource_pattern_type", "int8", (1, 3), default=3),
        Field("principal", "string", (1, 3)),
        Field("host", "string", (1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(slots=True, kw_only=True)
class CreateAclsRequest(Request[CreateAclsResponse]):
    """Versions 1 to 3, API key 30."""

    API_KEY: ClassVar[int] = 30
    NAME: ClassVar[str] = "CreateAclsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("creations", AclCreation, (1, 3), array=True),
    )

    creations: list[AclCreation] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[CreateAclsResponse]:
        """Return CreateAclsResponse."""
        return CreateAclsResponse
