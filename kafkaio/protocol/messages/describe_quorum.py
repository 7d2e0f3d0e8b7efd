"""DescribeQuorumRequest and DescribeQuorumResponse (API key 55), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumRequestPartitionData",
    "DescribeQuorumRequestTopicData",
    "DescribeQuorumResponse",
    "DescribeQuorumResponsePartitionData",
    "DescribeQuorumResponseTopicData",
    "Listener",
    "Node",
    "ReplicaState",
]


@dataclass(slots=True, kw_only=True)
class ReplicaState(Struct):
    """Part of DescribeQuorumResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (0, 2)),
        Field("replica_directory_id", "uuid", (2, 2)),
        Field("log_end_offset", "int64", (0, 2)),
        Field("last_fetch_timestamp", "int64", (1, 2), default=-1, ignorable=True),
        Field("last_caught_up_timestamp", "int64", (1, 2), default=-1, ignorable=True),
    )

    replica_id: int = 0
    replica_directory_id: UUID = ZERO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponsePartitionData(Struct):
    """Part of DescribeQuorumResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (2, 2), nullable=(2, 2), ignorable=True),
        Field("leader_id", "int32", (0, 2)),
        Field("leader_epoch", "int32", (0, 2)),
        Field("high_watermark", "int64", (0, 2)),
        Field("current_voters", ReplicaState, (0, 2), array=True),
        Field("observers", ReplicaState, (0, 2), array=True),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponseTopicData(Struct):
    """Part of DescribeQuorumResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", DescribeQuorumResponsePartitionData, (0, 2), array=True),
    )

    topic_name: str = ""
    partitions: list[DescribeQuorumResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Listener(Struct):
    """Part of DescribeQuorumResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 2)),
        Field("host", "string", (2, 2)),
        Field("port", "uint16", (2, 2)),
    )

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class Node(Struct):
    """Part of DescribeQuorumResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (2, 2)),
        Field("listeners", Listener, (2, 2), array=True),
    )

    node_id: int = 0
    listeners: list[Listener] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponse(Response):
    """Versions 0 to 2, API key 55."""

    API_KEY: ClassVar[int] = 55
    NAME: ClassVar[str] = "DescribeQuorumResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (2, 2), nullable=(2, 2), ignorable=True),
        Field("topics", DescribeQuorumResponseTopicData, (0, 2), array=True),
        Field("nodes", Node, (2, 2), array=True),
    )

    error_code: int = 0
    error_message: str | None = ""
    topics: list[DescribeQuorumResponseTopicData] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequestPartitionData(Struct):
    """Part of DescribeQuorumRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 2)),)

    partition_index: int = 0


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequestTopicData(Struct):
    """Part of DescribeQuorumRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", DescribeQuorumRequestPartitionData, (0, 2), array=True),
    )

    topic_name: str = ""
    partitions: list[DescribeQuorumRequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    """Versions 0 to 2, API key 55."""

    API_KEY: ClassVar[int] = 55
    NAME: ClassVar[str] = "DescribeQuorumRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", DescribeQuorumRequestTopicData, (0, 2), array=True),
    )

    topics: list[DescribeQuorumRequestTopicData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeQuorumResponse]:
        """Return DescribeQuorumResponse."""
        return DescribeQuorumResponse
