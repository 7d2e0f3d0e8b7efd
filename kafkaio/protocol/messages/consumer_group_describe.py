"""ConsumerGroupDescribeRequest and ConsumerGroupDescribeResponse (API key 69), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "Assignment",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribedGroup",
    "Member",
    "TopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class TopicPartitions(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("topic_name", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, (0, 1), array=True),
    )

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Member(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rack_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("member_epoch", "int32", (0, 1)),
        Field("client_id", "string", (0, 1)),
        Field("client_host", "string", (0, 1)),
        Field("subscribed_topic_names", "string", (0, 1), array=True),
        Field(
            "subscribed_topic_regex", "string", (0, 1), nullable=(0, 1), default=None
        ),
        Field("assignment", Assignment, (0, 1)),
        Field("target_assignment", Assignment, (0, 1)),
        Field("member_type", "int8", (1, 1), default=-1, ignorable=True),
    )

    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: int = -1


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
        Field("group_id", "string", (0, 1)),
        Field("group_state", "string", (0, 1)),
        Field("group_epoch", "int32", (0, 1)),
        Field("assignment_epoch", "int32", (0, 1)),
        Field("assignor_name", "string", (0, 1)),
        Field("members", Member, (0, 1), array=True),
        Field("authorized_operations", "int32", (0, 1), default=-2147483648),
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
class ConsumerGroupDescribeResponse(Response):
    """Versions 0 to 1, API key 69."""

    API_KEY: ClassVar[int] = 69
    NAME: ClassVar[str] = "ConsumerGroupDescribeResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("groups", DescribedGroup, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    """Versions 0 to 1, API key 69."""

    API_KEY: ClassVar[int] = 69
    NAME: ClassVar[str] = "ConsumerGroupDescribeRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", (0, 1), array=True),
        Field("include_authorized_operations", "bool", (0, 1)),
    )

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False

    @classmethod
    def response_type(cls) -> type[ConsumerGroupDescribeResponse]:
        """Return ConsumerGroupDescribeResponse."""
        return ConsumerGroupDescribeResponse
