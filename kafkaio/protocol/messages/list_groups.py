"""ListGroupsRequest and ListGroupsResponse (API key 16), versions 0 to 5."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
]


@dataclass(slots=True, kw_only=True)
class ListedGroup(Struct):
    """Part of ListGroupsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("protocol_type", "string", (0, 5)),
        Field("group_state", "string", (4, 5), ignorable=True),
        Field("group_type", "string", (5, 5), ignorable=True),
    )

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@dataclass(slots=True, kw_only=True)
class ListGroupsResponse(Response):
    """Versions 0 to 5, API key 16."""

    API_KEY: ClassVar[int] = 16
    NAME: ClassVar[str] = "ListGroupsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5), ignorable=True),
        Field("error_code", "int16", (0, 5)),
        Field("groups", ListedGroup, (0, 5), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListGroupsRequest(Request[ListGroupsResponse]):
    """Versions 0 to 5, API key 16."""

    API_KEY: ClassVar[int] = 16
    NAME: ClassVar[str] = "ListGroupsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("states_filter", "string", (4, 5), array=True),
        Field("types_filter", "string", (5, 5), array=True),
    )

    states_filter: list[str] = field(default_factory=list)
    types_filter: list[str] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ListGroupsResponse]:
        """Return ListGroupsResponse."""
        return ListGroupsResponse
