"""ShareGroupDescribeRequest and ShareGroupDescribeResponse (API key 77), versions 1 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "Assignment",
    "DescribedGroup",
    "Member",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "TopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class TopicPartitions(Struct):
    """Part of ShareGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 1)),
        Field("topic_name", "string", (1, 1)),
        Field("partitions", "int32", (1, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of ShareGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, (1, 1), array=True),
    )

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Member(Struct):
    """Part of ShareGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (1, 1)),
        Field("rack_id", "string", (1, 1), nullable=(1, 1), default=None),
        Field("member_epoch", "int32", (1, 1)),
        Field("client_id", "string", (1, 1)),
        Field("client_host", "string", (1, 1)),
        Field("subscribed_topic_names", "string", (1, 1), array=True),
        Field("assignment", Assignment, (1, 1)),
    )

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Struct):
    """Part of ShareGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 1)),
        Field("error_message", "string", (1, 1), nullable=(1, 1), default=None),
        Field("group_id", "string", (1, 1)),
        Field("group_state", "string", (1, 1)),
        Field("group_epoch", "int32", (1, 1)),
        Field("assignment_epoch", "int32", (1, 1)),
        Field("assignor_name", "string", (1, 1)),
        Field("members", Member, (1, 1), array=True),
        Field("authorized_operations", "int32", (1, 1), default=-2147483648),
    )

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponse(Response):
    """Versions 1 to 1, API key 77."""

    API_KEY: ClassVar[int] = 77
    NAME: ClassVar[str] = "ShareGroupDescribeResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 1)),
        Field("groups", DescribedGroup, (1, 1), array=True),
    )

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeRequest(Request[ShareGroupDescribeResponse]):
    """Versions 1 to 1, API key 77."""

    API_KEY: ClassVar[int] = 77
    NAME: ClassVar[str] = "ShareGroupDescribeRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", (1, 1), array=True),
        Field("include_authorized_operations", "bool", (1, 1)),
    )

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False

    @classmethod
    def response_type(cls) -> type[ShareGroupDescribeResponse]:
        """Return ShareGroupDescribeResponse."""
        return ShareGroupDescribeResponse
