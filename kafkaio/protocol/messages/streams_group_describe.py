"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse (API key 89), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "Assignment",
    "DescribedGroup",
    "Endpoint",
    "KeyValue",
    "Member",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "Topology",
]


@dataclass(slots=True, kw_only=True)
class KeyValue(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 0)),
        Field("value", "string", (0, 0)),
    )

    key: str = ""
    value: str = ""


@dataclass(slots=True, kw_only=True)
class TopicInfo(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", "int32", (0, 0)),
        Field("replication_factor", "int16", (0, 0)),
        Field("topic_configs", KeyValue, (0, 0), array=True),
    )

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Subtopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("source_topics", "string", (0, 0), array=True),
        Field("repartition_sink_topics", "string", (0, 0), array=True),
        Field("state_changelog_topics", TopicInfo, (0, 0), array=True),
        Field("repartition_source_topics", TopicInfo, (0, 0), array=True),
    )

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Topology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field(
            "subtopologies",
            Subtopology,
            (0, 0),
            array=True,
            nullable=(0, 0),
            default=None,
        ),
    )

    epoch: int = 0
    subtopologies: list[Subtopology] | None = None


@dataclass(slots=True, kw_only=True)
class Endpoint(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
    )

    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class TaskOffset(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("partition", "int32", (0, 0)),
        Field("offset", "int64", (0, 0)),
    )

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True)
class TaskIds(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("partitions", "int32", (0, 0), array=True),
    )

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", TaskIds, (0, 0), array=True),
        Field("standby_tasks", TaskIds, (0, 0), array=True),
        Field("warmup_tasks", TaskIds, (0, 0), array=True),
    )

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Member(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 0)),
        Field("member_epoch", "int32", (0, 0)),
        Field("instance_id", "string", (0, 0), nullable=(0, 0), default=None),
        Field("rack_id", "string", (0, 0), nullable=(0, 0), default=None),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("topology_epoch", "int32", (0, 0)),
        Field("process_id", "string", (0, 0)),
        Field("user_endpoint", Endpoint, (0, 0), nullable=(0, 0), default=None),
        Field("client_tags", KeyValue, (0, 0), array=True),
        Field("task_offsets", TaskOffset, (0, 0), array=True),
        Field("task_end_offsets", TaskOffset, (0, 0), array=True),
        Field("assignment", Assignment, (0, 0)),
        Field("target_assignment", Assignment, (0, 0)),
        Field("is_classic", "bool", (0, 0)),
    )

    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
        Field("group_id", "string", (0, 0)),
        Field("group_state", "string", (0, 0)),
        Field("group_epoch", "int32", (0, 0)),
        Field("assignment_epoch", "int32", (0, 0)),
        Field("topology", Topology, (0, 0), nullable=(0, 0), default=None),
        Field("members", Member, (0, 0), array=True),
        Field("authorized_operations", "int32", (0, 0), default=-2147483648),
    )

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponse(Response):
    """Versions 0 to 0, API key 89."""

    API_KEY: ClassVar[int] = 89
    NAME: ClassVar[str] = "StreamsGroupDescribeResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("groups", DescribedGroup, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    """Versions 0 to 0, API key 89."""

    API_KEY: ClassVar[int] = 89
    NAME: ClassVar[str] = "StreamsGroupDescribeRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", (0, 0), array=True),
        Field("include_authorized_operations", "bool", (0, 0)),
    )

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False

    @classmethod
    def response_type(cls) -> type[StreamsGroupDescribeResponse]:
        """Return StreamsGroupDescribeResponse."""
        return StreamsGroupDescribeResponse
