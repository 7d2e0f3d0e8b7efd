"""MetadataRequest and MetadataResponse (API key 3), versions 0 to 13."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class MetadataResponseBroker(Struct):
    """Part of MetadataResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (0, 13)),
        Field("host", "string", (0, 13)),
        Field("port", "int32", (0, 13)),
        Field(
            "rack", "string", (1, 13), nullable=(1, 13), default=None, ignorable=True
        ),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True)
class MetadataResponsePartition(Struct):
    """Part of MetadataResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 13)),
        Field("partition_index", "int32", (0, 13)),
        Field("leader_id", "int32", (0, 13)),
        Field("leader_epoch", "int32", (7, 13), default=-1, ignorable=True),
        Field("replica_nodes", "int32", (0, 13), array=True),
        Field("isr_nodes", "int32", (0, 13), array=True),
        Field("offline_replicas", "int32", (5, 13), array=True, ignorable=True),
    )

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MetadataResponseTopic(Struct):
    """Part of MetadataResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 13)),
        Field("name", "string", (0, 13), nullable=(12, 13)),
        Field("topic_id", "uuid", (10, 13), ignorable=True),
        Field("is_internal", "bool", (1, 13), ignorable=True),
        Field("partitions", MetadataResponsePartition, (0, 13), array=True),
        Field("topic_authorized_operations", "int32", (8, 13), default=-2147483648),
    )

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class MetadataResponse(Response):
    """Versions 0 to 13, API key 3."""

    API_KEY: ClassVar[int] = 3
    NAME: ClassVar[str] = "MetadataResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 13
    LAST_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 13), ignorable=True),
        Field("brokers", MetadataResponseBroker, (0, 13), array=True),
        Field(
            "cluster_id",
            "string",
            (2, 13),
            nullable=(2, 13),
            default=None,
            ignorable=True,
        ),
        Field("controller_id", "int32", (1, 13), default=-1, ignorable=True),
        Field("topics", MetadataResponseTopic, (0, 13), array=True),
        Field("cluster_authorized_operations", "int32", (8, 10), default=-2147483648),
        Field("error_code", "int16", (13, 13), ignorable=True),
    )

    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class MetadataRequestTopic(Struct):
    """Part of MetadataRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (10, 13), ignorable=True),
        Field("name", "string", (0, 13), nullable=(10, 13)),
    )

    topic_id: UUID = ZERO_UUID
    name: str | None = ""


@dataclass(slots=True, kw_only=True)
class MetadataRequest(Request[MetadataResponse]):
    """Versions 0 to 13, API key 3."""

    API_KEY: ClassVar[int] = 3
    NAME: ClassVar[str] = "MetadataRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 13
    LAST_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", MetadataRequestTopic, (0, 13), array=True, nullable=(1, 13)),
        Field("allow_auto_topic_creation", "bool", (4, 13), default=True),
        Field("include_cluster_authorized_operations", "bool", (8, 10)),
        Field("include_topic_authorized_operations", "bool", (8, 13)),
    )

    topics: list[MetadataRequestTopic] | None = field(default_factory=list)
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    @classmethod
    def response_type(cls) -> type[MetadataResponse]:
        """Return MetadataResponse."""
        return MetadataResponse
