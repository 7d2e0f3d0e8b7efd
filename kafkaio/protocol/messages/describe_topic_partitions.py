"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse (API key 75), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsRequestCursor",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponseCursor",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "TopicRequest",
]


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponsePartition(Struct):
    """Part of DescribeTopicPartitionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
        Field("leader_id", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0), default=-1, ignorable=True),
        Field("replica_nodes", "int32", (0, 0), array=True),
        Field("isr_nodes", "int32", (0, 0), array=True),
        Field(
            "eligible_leader_replicas",
            "int32",
            (0, 0),
            array=True,
            nullable=(0, 0),
            default=None,
        ),
        Field(
            "last_known_elr", "int32", (0, 0), array=True, nullable=(0, 0), default=None
        ),
        Field("offline_replicas", "int32", (0, 0), array=True, ignorable=True),
    )

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponseTopic(Struct):
    """Part of DescribeTopicPartitionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("name", "string", (0, 0), nullable=(0, 0)),
        Field("topic_id", "uuid", (0, 0), ignorable=True),
        Field("is_internal", "bool", (0, 0), ignorable=True),
        Field(
            "partitions", DescribeTopicPartitionsResponsePartition, (0, 0), array=True
        ),
        Field("topic_authorized_operations", "int32", (0, 0), default=-2147483648),
    )

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        default_factory=list
    )
    topic_authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponseCursor(Struct):
    """Part of DescribeTopicPartitionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
    )

    topic_name: str = ""
    partition_index: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponse(Response):
    """Versions 0 to 0, API key 75."""

    API_KEY: ClassVar[int] = 75
    NAME: ClassVar[str] = "DescribeTopicPartitionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0), ignorable=True),
        Field("topics", DescribeTopicPartitionsResponseTopic, (0, 0), array=True),
        Field(
            "next_cursor",
            DescribeTopicPartitionsResponseCursor,
            (0, 0),
            nullable=(0, 0),
            default=None,
        ),
    )

    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None


@dataclass(slots=True, kw_only=True)
class TopicRequest(Struct):
    """Part of DescribeTopicPartitionsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0)),)

    name: str = ""


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsRequestCursor(Struct):
    """Part of DescribeTopicPartitionsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
    )

    topic_name: str = ""
    partition_index: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsRequest(Request[DescribeTopicPartitionsResponse]):
    """Versions 0 to 0, API key 75."""

    API_KEY: ClassVar[int] = 75
    NAME: ClassVar[str] = "DescribeTopicPartitionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, (0, 0), array=True),
        Field("response_partition_limit", "int32", (0, 0), default=2000),
        Field(
            "cursor",
            DescribeTopicPartitionsRequestCursor,
            (0, 0),
            nullable=(0, 0),
            default=None,
        ),
    )

    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None

    @classmethod
    def response_type(cls) -> type[DescribeTopicPartitionsResponse]:
        """Return DescribeTopicPartitionsResponse."""
        return DescribeTopicPartitionsResponse
