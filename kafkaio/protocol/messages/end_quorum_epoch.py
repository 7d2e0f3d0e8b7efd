"""EndQuorumEpochRequest and EndQuorumEpochResponse (API key 54), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "EndQuorumEpochRequest",
    "EndQuorumEpochRequestPartitionData",
    "EndQuorumEpochRequestTopicData",
    "EndQuorumEpochResponse",
    "EndQuorumEpochResponsePartitionData",
    "EndQuorumEpochResponseTopicData",
    "LeaderEndpoint",
    "NodeEndpoint",
    "ReplicaInfo",
]


@dataclass(slots=True, kw_only=True)
class EndQuorumEpochResponsePartitionData(Struct):
    """Part of EndQuorumEpochResponse."""

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
class EndQuorumEpochResponseTopicData(Struct):
    """Part of EndQuorumEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", EndQuorumEpochResponsePartitionData, (0, 1), array=True),
    )

    topic_name: str = ""
    partitions: list[EndQuorumEpochResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of EndQuorumEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class EndQuorumEpochResponse(Response):
    """Versions 0 to 1, API key 54."""

    API_KEY: ClassVar[int] = 54
    NAME: ClassVar[str] = "EndQuorumEpochResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("topics", EndQuorumEpochResponseTopicData, (0, 1), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 1), array=True, tag=0, tagged=(1, 1)),
    )

    error_code: int = 0
    topics: list[EndQuorumEpochResponseTopicData] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReplicaInfo(Struct):
    """Part of EndQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("candidate_id", "int32", (1, 1)),
        Field("candidate_directory_id", "uuid", (1, 1)),
    )

    candidate_id: int = 0
    candidate_directory_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True)
class EndQuorumEpochRequestPartitionData(Struct):
    """Part of EndQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("preferred_successors", "int32", (0, 0), array=True, ignorable=True),
        Field("preferred_candidates", ReplicaInfo, (1, 1), array=True, ignorable=True),
    )

    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_successors: list[int] = field(default_factory=list)
    preferred_candidates: list[ReplicaInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class EndQuorumEpochRequestTopicData(Struct):
    """Part of EndQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", EndQuorumEpochRequestPartitionData, (0, 1), array=True),
    )

    topic_name: str = ""
    partitions: list[EndQuorumEpochRequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LeaderEndpoint(Struct):
    """Part of EndQuorumEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class EndQuorumEpochRequest(Request[EndQuorumEpochResponse]):
    """Versions 0 to 1, API key 54."""

    API_KEY: ClassVar[int] = 54
    NAME: ClassVar[str] = "EndQuorumEpochRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("topics", EndQuorumEpochRequestTopicData, (0, 1), array=True),
        Field("leader_endpoints", LeaderEndpoint, (1, 1), array=True, ignorable=True),
    )

    cluster_id: str | None = None
    topics: list[EndQuorumEpochRequestTopicData] = field(default_factory=list)
    leader_endpoints: list[LeaderEndpoint] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[EndQuorumEpochResponse]:
        """Return EndQuorumEpochResponse."""
        return EndQuorumEpochResponse
