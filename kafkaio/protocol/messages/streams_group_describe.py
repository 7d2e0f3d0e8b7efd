"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse (API key 89), versions 0 to 1."""

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
    "TopologyDescription",
    "TopologyDescriptionGlobalStore",
    "TopologyDescriptionNode",
    "TopologyDescriptionSubtopology",
]


@dataclass(slots=True, kw_only=True)
class KeyValue(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "string", (0, 1)),
    )

    key: str = ""
    value: str = ""


@dataclass(slots=True, kw_only=True)
class TopicInfo(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", "int32", (0, 1)),
        Field("replication_factor", "int16", (0, 1)),
        Field("topic_configs", KeyValue, (0, 1), array=True),
    )

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Subtopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("source_topics", "string", (0, 1), array=True),
        Field("repartition_sink_topics", "string", (0, 1), array=True),
        Field("state_changelog_topics", TopicInfo, (0, 1), array=True),
        Field("repartition_source_topics", TopicInfo, (0, 1), array=True),
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
        Field("epoch", "int32", (0, 1)),
        Field(
            "subtopologies",
            Subtopology,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
    )

    epoch: int = 0
    subtopologies: list[Subtopology] | None = None


@dataclass(slots=True, kw_only=True)
class Endpoint(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )

    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class TaskOffset(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partition", "int32", (0, 1)),
        Field("offset", "int64", (0, 1)),
    )

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True)
class TaskIds(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", TaskIds, (0, 1), array=True),
        Field("standby_tasks", TaskIds, (0, 1), array=True),
        Field("warmup_tasks", TaskIds, (0, 1), array=True),
    )

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Member(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rack_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("client_id", "string", (0, 1)),
        Field("client_host", "string", (0, 1)),
        Field("topology_epoch", "int32", (0, 1)),
        Field("process_id", "string", (0, 1)),
        Field("user_endpoint", Endpoint, (0, 1), nullable=(0, 1), default=None),
        Field("client_tags", KeyValue, (0, 1), array=True),
        Field("task_offsets", TaskOffset, (0, 1), array=True),
        Field("task_end_offsets", TaskOffset, (0, 1), array=True),
        Field("assignment", Assignment, (0, 1)),
        Field("target_assignment", Assignment, (0, 1)),
        Field("is_classic", "bool", (0, 1)),
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
class TopologyDescriptionNode(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 1)),
        Field("node_type", "int8", (1, 1)),
        Field("source_topics", "string", (1, 1), array=True),
        Field("sink_topic", "string", (1, 1), nullable=(1, 1), default=None),
        Field("stores", "string", (1, 1), array=True),
        Field("successors", "string", (1, 1), array=True),
    )

    name: str = ""
    node_type: int = 0
    source_topics: list[str] = field(default_factory=list)
    sink_topic: str | None = None
    stores: list[str] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopologyDescriptionSubtopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (1, 1)),
        Field("nodes", TopologyDescriptionNode, (1, 1), array=True),
    )

    subtopology_id: str = ""
    nodes: list[TopologyDescriptionNode] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopologyDescriptionGlobalStore(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("source", TopologyDescriptionNode, (1, 1)),
        Field("processor", TopologyDescriptionNode, (1, 1)),
    )

    source: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)


@dataclass(slots=True, kw_only=True)
class TopologyDescription(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopologies", TopologyDescriptionSubtopology, (1, 1), array=True),
        Field("global_stores", TopologyDescriptionGlobalStore, (1, 1), array=True),
    )

    subtopologies: list[TopologyDescriptionSubtopology] = field(default_factory=list)
    global_stores: list[TopologyDescriptionGlobalStore] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Struct):
    """Part of StreamsGroupDescribeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
        Field("group_id", "string", (0, 1)),
        Field("group_state", "string", (0, 1)),
        Field("group_epoch", "int32", (0, 1)),
        Field("assignment_epoch", "int32", (0, 1)),
        Field("topology", Topology, (0, 1), nullable=(0, 1), default=None),
        Field("members", Member, (0, 1), array=True),
        Field("authorized_operations", "int32", (0, 1), default=-2147483648),
        Field(
            "topology_description",
            TopologyDescription,
            (1, 1),
            nullable=(1, 1),
            default=None,
        ),
        Field("topology_description_status", "int8", (1, 1)),
        Field(
            "assignor_name",
            "string",
            (1, 1),
            nullable=(1, 1),
            default=None,
            ignorable=True,
        ),
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
    topology_description: TopologyDescription | None = None
    topology_description_status: int = 0
    assignor_name: str | None = None


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponse(Response):
    """Versions 0 to 1, API key 89."""

    API_KEY: ClassVar[int] = 89
    NAME: ClassVar[str] = "StreamsGroupDescribeResponse"
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
class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    """Versions 0 to 1, API key 89."""

    API_KEY: ClassVar[int] = 89
    NAME: ClassVar[str] = "StreamsGroupDescribeRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", (0, 1), array=True),
        Field("include_authorized_operations", "bool", (0, 1)),
        Field("include_topology_description", "bool", (1, 1)),
    )

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False
    include_topology_description: bool = False

    @classmethod
    def response_type(cls) -> type[StreamsGroupDescribeResponse]:
        """Return StreamsGroupDescribeResponse."""
        return StreamsGroupDescribeResponse
