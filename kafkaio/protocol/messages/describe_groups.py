"""DescribeGroupsRequest and DescribeGroupsResponse (API key 15), versions 0 to 6."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedGroupMember",
]


@dataclass(slots=True, kw_only=True)
class DescribedGroupMember(Struct):
    """Part of DescribeGroupsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 6)),
        Field(
            "group_instance_id",
            "string",
            (4, 6),
            nullable=(4, 6),
            default=None,
            ignorable=True,
        ),
        Field("client_id", "string", (0, 6)),
        Field("client_host", "string", (0, 6)),
        Field("member_metadata", "bytes", (0, 6)),
        Field("member_assignment", "bytes", (0, 6)),
    )

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Struct):
    """Part of DescribeGroupsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 6)),
        Field("error_message", "string", (6, 6), nullable=(6, 6), default=None),
        Field("group_id", "string", (0, 6)),
        Field("group_state", "string", (0, 6)),
        Field("protocol_type", "string", (0, 6)),
        Field("protocol_data", "string", (0, 6)),
        Field("members", DescribedGroupMember, (0, 6), array=True),
        Field("authorized_operations", "int32", (3, 6), default=-2147483648),
    )

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponse(Response):
    """Versions 0 to 6, API key 15."""

    API_KEY: ClassVar[int] = 15
    NAME: ClassVar[str] = "DescribeGroupsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6), ignorable=True),
        Field("groups", DescribedGroup, (0, 6), array=True),
    )

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """Versions 0 to 6, API key 15."""

    API_KEY: ClassVar[int] = 15
    NAME: ClassVar[str] = "DescribeGroupsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("groups", "string", (0, 6), array=True),
        Field("include_authorized_operations", "bool", (3, 6)),
    )

    groups: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False

    @classmethod
    def response_type(cls) -> type[DescribeGroupsResponse]:
        """Return DescribeGroupsResponse."""
        return DescribeGroupsResponse
