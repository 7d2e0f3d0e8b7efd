"""LeaveGroupRequest and LeaveGroupResponse (API key 13), versions 0 to 5."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "MemberIdentity",
    "MemberResponse",
]


@dataclass(slots=True, kw_only=True)
class MemberResponse(Struct):
    """Part of LeaveGroupResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (3, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5)),
        Field("error_code", "int16", (3, 5)),
    )

    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponse(Response):
    """Versions 0 to 5, API key 13."""

    API_KEY: ClassVar[int] = 13
    NAME: ClassVar[str] = "LeaveGroupResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5), ignorable=True),
        Field("error_code", "int16", (0, 5)),
        Field("members", MemberResponse, (3, 5), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MemberIdentity(Struct):
    """Part of LeaveGroupRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (3, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5), default=None),
        Field(
            "reason", "string", (5, 5), nullable=(5, 5), default=None, ignorable=True
        ),
    )

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """Versions 0 to 5, API key 13."""

    API_KEY: ClassVar[int] = 13
    NAME: ClassVar[str] = "LeaveGroupRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("member_id", "string", (0, 2)),
        Field("members", MemberIdentity, (3, 5), array=True),
    )

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[LeaveGroupResponse]:
        """Return LeaveGroupResponse."""
        return LeaveGroupResponse
