"""SyncGroupRequest and SyncGroupResponse (API key 14), versions 0 to 5."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
]


@dataclass(slots=True, kw_only=True)
class SyncGroupResponse(Response):
    """Versions 0 to 5, API key 14."""

    API_KEY: ClassVar[int] = 14
    NAME: ClassVar[str] = "SyncGroupResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5), ignorable=True),
        Field("error_code", "int16", (0, 5)),
        Field(
            "protocol_type",
            "string",
            (5, 5),
            nullable=(5, 5),
            default=None,
            ignorable=True,
        ),
        Field(
            "protocol_name",
            "string",
            (5, 5),
            nullable=(5, 5),
            default=None,
            ignorable=True,
        ),
        Field("assignment", "bytes", (0, 5)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class SyncGroupRequestAssignment(Struct):
    """Part of SyncGroupRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 5)),
        Field("assignment", "bytes", (0, 5)),
    )

    member_id: str = ""
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class SyncGroupRequest(Request[SyncGroupResponse]):
    """Versions 0 to 5, API key 14."""

    API_KEY: ClassVar[int] = 14
    NAME: ClassVar[str] = "SyncGroupRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("generation_id", "int32", (0, 5)),
        Field("member_id", "string", (0, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5), default=None),
        Field(
            "protocol_type",
            "string",
            (5, 5),
            nullable=(5, 5),
            default=None,
            ignorable=True,
        ),
        Field(
            "protocol_name",
            "string",
            (5, 5),
            nullable=(5, 5),
            default=None,
            ignorable=True,
        ),
        Field("assignments", SyncGroupRequestAssignment, (0, 5), array=True),
    )

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[SyncGroupResponse]:
        """Return SyncGroupResponse."""
        return SyncGroupResponse
