"""VoteRequest and VoteResponse (API key 52), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "NodeEndpoint",
    "VoteRequest",
    "VoteRequestPartitionData",
    "VoteRequestTopicData",
    "VoteResponse",
    "VoteResponsePartitionData",
    "VoteResponseTopicData",
]


@dataclass(slots=True, kw_only=True)
class VoteResponsePartitionData(Struct):
    """Part of VoteResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("leader_id", "int32", (0, 2)),
        Field("leader_epoch", "int32", (0, 2)),
        Field("vote_granted", "bool", (0, 2)),
    )

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    vote_granted: bool = False


@dataclass(slots=True, kw_only=True)
class VoteResponseTopicData(Struct):
    """Part of VoteResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", VoteResponsePartitionData, (0, 2), array=True),
    )

    topic_name: str = ""
    partitions: list[VoteResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of VoteResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 2)),
        Field("host", "string", (1, 2)),
        Field("port", "uint16", (1, 2)),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class VoteResponse(Response):
    """Versions 0 to 2, API key 52."""

    API_KEY: ClassVar[int] = 52
    NAME: ClassVar[str] = "VoteResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("topics", VoteResponseTopicData, (0, 2), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 2), array=True, tag=0, tagged=(1, 2)),
    )

    error_code: int = 0
    topics: list[VoteResponseTopicData] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class VoteRequestPartitionData(Struct):
    """Part of VoteRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("replica_epoch", "int32", (0, 2)),
        Field("replica_id", "int32", (0, 2)),
        Field("replica_directory_id", "uuid", (1, 2), ignorable=True),
        Field("voter_directory_id", "uuid", (1, 2), ignorable=True),
        Field("last_offset_epoch", "int32", (0, 2)),
        Field("last_offset", "int64", (0, 2)),
        Field("pre_vote", "bool", (2, 2)),
    )

    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: UUID = ZERO_UUID
    voter_directory_id: UUID = ZERO_UUID
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False


@dataclass(slots=True, kw_only=True)
class VoteRequestTopicData(Struct):
    """Part of VoteRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", VoteRequestPartitionData, (0, 2), array=True),
    )

    topic_name: str = ""
    partitions: list[VoteRequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class VoteRequest(Request[VoteResponse]):
    """Versions 0 to 2, API key 52."""

    API_KEY: ClassVar[int] = 52
    NAME: ClassVar[str] = "VoteRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 2), nullable=(0, 2), default=None),
        Field("voter_id", "int32", (1, 2), default=-1, ignorable=True),
        Field("topics", VoteRequestTopicData, (0, 2), array=True),
    )

    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[VoteRequestTopicData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[VoteResponse]:
        """Return VoteResponse."""
        return VoteResponse
