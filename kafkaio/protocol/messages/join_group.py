"""JoinGroupRequest and JoinGroupResponse (API key 11), versions 0 to 9."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
]


@dataclass(slots=True, kw_only=True)
class JoinGroupResponseMember(Struct):
    """Part of JoinGroupResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 9)),
        Field(
            "group_instance_id",
            "string",
            (5, 9),
            nullable=(5, 9),
            default=None,
            ignorable=True,
        ),
        Field("metadata", "bytes", (0, 9)),
    )

    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


@dataclass(slots=True, kw_only=True)
class JoinGroupResponse(Response):
    """Versions 0 to 9, API key 11."""

    API_KEY: ClassVar[int] = 11
    NAME: ClassVar[str] = "JoinGroupResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    LAST_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 9), ignorable=True),
        Field("error_code", "int16", (0, 9)),
        Field("generation_id", "int32", (0, 9), default=-1),
        Field(
            "protocol_type",
            "string",
            (7, 9),
            nullable=(7, 9),
            default=None,
            ignorable=True,
        ),
        Field("protocol_name", "string", (0, 9), nullable=(7, 9)),
        Field("leader", "string", (0, 9)),
        Field("skip_assignment", "bool", (9, 9)),
        Field("member_id", "string", (0, 9)),
        Field("members", JoinGroupResponseMember, (0, 9), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class JoinGroupRequestProtocol(Struct):
    """Part of JoinGroupRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 9)),
        Field("metadata", "bytes", (0, 9)),
    )

    name: str = ""
    metadata: bytes = b""


@dataclass(slots=True, kw_only=True)
class JoinGroupRequest(Request[JoinGroupResponse]):
    """Versions 0 to 9, API key 11."""

    API_KEY: ClassVar[int] = 11
    NAME: ClassVar[str] = "JoinGroupRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    LAST_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 9)),
        Field("session_timeout_ms", "int32", (0, 9)),
        Field("rebalance_timeout_ms", "int32", (1, 9), default=-1, ignorable=True),
        Field("member_id", "string", (0, 9)),
        Field("group_instance_id", "string", (5, 9), nullable=(5, 9), default=None),
        Field("protocol_type", "string", (0, 9)),
        Field("protocols", JoinGroupRequestProtocol, (0, 9), array=True),
        Field(
            "reason", "string", (8, 9), nullable=(8, 9), default=None, ignorable=True
        ),
    )

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: str | None = None

    @classmethod
    def response_type(cls) -> type[JoinGroupResponse]:
        """Return JoinGroupResponse."""
        return JoinGroupResponse
