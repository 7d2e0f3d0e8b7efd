"""StreamsGroupHeartbeatRequest and StreamsGroupHeartbeatResponse (API key 88), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "CopartitionGroup",
    "EndpointToPartitions",
    "KeyValue",
    "Status",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatRequestEndpoint",
    "StreamsGroupHeartbeatRequestTaskIds",
    "StreamsGroupHeartbeatResponse",
    "StreamsGroupHeartbeatResponseEndpoint",
    "StreamsGroupHeartbeatResponseTaskIds",
    "Subtopology",
    "TaskOffset",
    "TopicInfo",
    "TopicPartition",
    "Topology",
]


@dataclass(slots=True, kw_only=True)
class Status(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("status_code", "int8", (0, 1)),
        Field("status_detail", "string", (0, 1)),
    )

    status_code: int = 0
    status_detail: str = ""


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseTaskIds(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseEndpoint(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )

    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class TopicPartition(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class EndpointToPartitions(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("user_endpoint", StreamsGroupHeartbeatResponseEndpoint, (0, 1)),
        Field("active_partitions", TopicPartition, (0, 1), array=True),
        Field("standby_partitions", TopicPartition, (0, 1), array=True),
    )

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(
        default_factory=StreamsGroupHeartbeatResponseEndpoint
    )
    active_partitions: list[TopicPartition] = field(default_factory=list)
    standby_partitions: list[TopicPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponse(Response):
    """Versions 0 to 1, API key 88."""

    API_KEY: ClassVar[int] = 88
    NAME: ClassVar[str] = "StreamsGroupHeartbeatResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("heartbeat_interval_ms", "int32", (0, 1)),
        Field("acceptable_recovery_lag_legacy", "int32", (0, 0)),
        Field("task_offset_interval_ms", "int32", (0, 1)),
        Field("acceptable_recovery_lag", "int64", (1, 1), default=-1, ignorable=True),
        Field("status", Status, (0, 1), array=True, nullable=(0, 1)),
        Field(
            "active_tasks",
            StreamsGroupHeartbeatResponseTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "standby_tasks",
            StreamsGroupHeartbeatResponseTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "warmup_tasks",
            StreamsGroupHeartbeatResponseTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field("topology_description_required", "bool", (1, 1)),
        Field("endpoint_information_epoch", "int32", (0, 1)),
        Field(
            "partitions_by_user_endpoint",
            EndpointToPartitions,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag_legacy: int = 0
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    topology_description_required: bool = False
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None


@dataclass(slots=True, kw_only=True)
class KeyValue(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "string", (0, 1)),
    )

    key: str = ""
    value: str = ""


@dataclass(slots=True, kw_only=True)
class TopicInfo(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

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
class CopartitionGroup(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", "int16", (0, 1), array=True),
        Field("source_topic_regex", "int16", (0, 1), array=True),
        Field("repartition_source_topics", "int16", (0, 1), array=True),
    )

    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Subtopology(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("source_topics", "string", (0, 1), array=True),
        Field("source_topic_regex", "string", (0, 1), array=True),
        Field("state_changelog_topics", TopicInfo, (0, 1), array=True),
        Field("repartition_sink_topics", "string", (0, 1), array=True),
        Field("repartition_source_topics", TopicInfo, (0, 1), array=True),
        Field("copartition_groups", CopartitionGroup, (0, 1), array=True),
    )

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Topology(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 1)),
        Field("subtopologies", Subtopology, (0, 1), array=True),
    )

    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTaskIds(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestEndpoint(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )

    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class TaskOffset(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partition", "int32", (0, 1)),
        Field("offset", "int64", (0, 1)),
    )

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequest(Request[StreamsGroupHeartbeatResponse]):
    """Versions 0 to 1, API key 88."""

    API_KEY: ClassVar[int] = 88
    NAME: ClassVar[str] = "StreamsGroupHeartbeatRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("endpoint_information_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rack_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rebalance_timeout_ms", "int32", (0, 1), default=-1),
        Field("topology", Topology, (0, 1), nullable=(0, 1), default=None),
        Field(
            "active_tasks",
            StreamsGroupHeartbeatRequestTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "standby_tasks",
            StreamsGroupHeartbeatRequestTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "warmup_tasks",
            StreamsGroupHeartbeatRequestTaskIds,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field("process_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field(
            "user_endpoint",
            StreamsGroupHeartbeatRequestEndpoint,
            (0, 1),
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "client_tags", KeyValue, (0, 1), array=True, nullable=(0, 1), default=None
        ),
        Field(
            "task_offsets",
            TaskOffset,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "task_end_offsets",
            TaskOffset,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field("shutdown_application", "bool", (0, 1)),
    )

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False

    @classmethod
    def response_type(cls) -> type[StreamsGroupHeartbeatResponse]:
        """Return StreamsGroupHeartbeatResponse."""
        return StreamsGroupHeartbeatResponse
