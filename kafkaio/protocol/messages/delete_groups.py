"""DeleteGroupsRequest and DeleteGroupsResponse (API key 42), versions 0 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
]


@dataclass(slots=True, kw_only=True)
class DeletableGroupResult(Struct):
    """Part of DeleteGroupsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 3)),
        Field("error_code", "int16", (0, 3)),
        Field(
            "error_message",
            "string",
            (3, 3),
            nullable=(3, 3),
            default=None,
            ignorable=True,
        ),
    )

    group_id: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse(Response):
    """Versions 0 to 3, API key 42."""

    API_KEY: ClassVar[int] = 42
    NAME: ClassVar[str] = "DeleteGroupsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 3)),
        Field("results", DeletableGroupResult, (0, 3), array=True),
    )

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    """Versions 0 to 3, API key 42."""

    API_KEY: ClassVar[int] = 42
    NAME: ClassVar[str] = "DeleteGroupsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("groups_names", "string", (0, 3), array=True),
    )

    groups_names: list[str] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DeleteGroupsResponse]:
        """Return DeleteGroupsResponse."""
        return DeleteGroupsResponse
