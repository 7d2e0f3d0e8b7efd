"""BeginQuorumEpochRequest and BeginQuorumEpochResponse (API key 53), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochRequestPartitionData",
    "BeginQuorumEpochRequestTopicData",
    "BeginQuorumEpochResponse",
    "BeginQuorumEpochResponsePartitionData",
    "BeginQuorumEpochResponseTopicData",
    "LeaderEndpoint",
    "NodeEndpoint",
]


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochResponsePartitionData(Struct):
    """Part of BeginQuorumEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochResponseTopicData(Struct):
    """Part of BeginQuorumEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", BeginQuorumEpochResponsePartitionData, (0, 1), array=True),
    )

    topic_name: str = ""
    partitions: list[BeginQuorumEpochResponsePartitionData] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of BeginQuorumEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochResponse(Response):
    """Versions 0 to 1, API key 53."""

    API_KEY: ClassVar[int] = 53
    NAME: ClassVar[str] = "BeginQuorumEpochResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("topics", BeginQuorumEpochResponseTopicData, (0, 1), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 1), array=True, tag=0, tagged=(1, 1)),
    )

    error_code: int = 0
    topics: list[BeginQuorumEpochResponseTopicData] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochRequestPartitionData(Struct):
    """Part of BeginQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("voter_directory_id", "uuid", (1, 1), ignorable=True),
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )

    partition_index: int = 0
    voter_directory_id: UUID = ZERO_UUID
    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochRequestTopicData(Struct):
    """Part of BeginQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", BeginQuorumEpochRequestPartitionData, (0, 1), array=True),
    )

    topic_name: str = ""
    partitions: list[BeginQuorumEpochRequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LeaderEndpoint(Struct):
    """Part of BeginQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class BeginQuorumEpochRequest(Request[BeginQuorumEpochResponse]):
    """Versions 0 to 1, API key 53."""

    API_KEY: ClassVar[int] = 53
    NAME: ClassVar[str] = "BeginQuorumEpochRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("voter_id", "int32", (1, 1), default=-1, ignorable=True),
        Field("topics", BeginQuorumEpochRequestTopicData, (0, 1), array=True),
        Field("leader_endpoints", LeaderEndpoint, (1, 1), array=True, ignorable=True),
    )

    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[BeginQuorumEpochRequestTopicData] = field(default_factory=list)
    leader_endpoints: list[LeaderEndpoint] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[BeginQuorumEpochResponse]:
        """Return BeginQuorumEpochResponse."""
        return BeginQuorumEpochResponse
