"""FetchSnapshotRequest and FetchSnapshotResponse (API key 59), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import (
    ZERO_UUID,
    Buffer,
    Field,
    Request,
    Response,
    Struct,
)

__all__ = [
    "FetchSnapshotRequest",
    "FetchSnapshotRequestPartitionSnapshot",
    "FetchSnapshotRequestSnapshotId",
    "FetchSnapshotRequestTopicSnapshot",
    "FetchSnapshotResponse",
    "FetchSnapshotResponsePartitionSnapshot",
    "FetchSnapshotResponseSnapshotId",
    "FetchSnapshotResponseTopicSnapshot",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
]


@dataclass(slots=True, kw_only=True)
class FetchSnapshotResponseSnapshotId(Struct):
    """Part of FetchSnapshotResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", (0, 1)),
        Field("epoch", "int32", (0, 1)),
    )

    end_offset: int = 0
    epoch: int = 0


@dataclass(slots=True, kw_only=True)
class LeaderIdAndEpoch(Struct):
    """Part of FetchSnapshotResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )

    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class FetchSnapshotResponsePartitionSnapshot(Struct):
    """Part of FetchSnapshotResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("snapshot_id", FetchSnapshotResponseSnapshotId, (0, 1)),
        Field("current_leader", LeaderIdAndEpoch, (0, 1), tag=0, tagged=(0, 1)),
        Field("size", "int64", (0, 1)),
        Field("position", "int64", (0, 1)),
        Field("unaligned_records", "records", (0, 1)),
    )

    index: int = 0
    error_code: int = 0
    snapshot_id: FetchSnapshotResponseSnapshotId = field(
        default_factory=FetchSnapshotResponseSnapshotId
    )
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    size: int = 0
    position: int = 0
    unaligned_records: Buffer = b""


@dataclass(slots=True, kw_only=True)
class FetchSnapshotResponseTopicSnapshot(Struct):
    """Part of FetchSnapshotResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", FetchSnapshotResponsePartitionSnapshot, (0, 1), array=True),
    )

    name: str = ""
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of FetchSnapshotResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class FetchSnapshotResponse(Response):
    """Versions 0 to 1, API key 59."""

    API_KEY: ClassVar[int] = 59
    NAME: ClassVar[str] = "FetchSnapshotResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1), ignorable=True),
        Field("error_code", "int16", (0, 1)),
        Field("topics", FetchSnapshotResponseTopicSnapshot, (0, 1), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 1), array=True, tag=0, tagged=(1, 1)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[FetchSnapshotResponseTopicSnapshot] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FetchSnapshotRequestSnapshotId(Struct):
    """Part of FetchSnapshotRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", (0, 1)),
        Field("epoch", "int32", (0, 1)),
    )

    end_offset: int = 0
    epoch: int = 0


@dataclass(slots=True, kw_only=True)
class FetchSnapshotRequestPartitionSnapshot(Struct):
    """Part of FetchSnapshotRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("current_leader_epoch", "int32", (0, 1)),
        Field("snapshot_id", FetchSnapshotRequestSnapshotId, (0, 1)),
        Field("position", "int64", (0, 1)),
        Field(
            "replica_directory_id", "uuid", (1, 1), tag=0, tagged=(1, 1), ignorable=True
        ),
    )

    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: FetchSnapshotRequestSnapshotId = field(
        default_factory=FetchSnapshotRequestSnapshotId
    )
    position: int = 0
    replica_directory_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True)
class FetchSnapshotRequestTopicSnapshot(Struct):
    """Part of FetchSnapshotRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", FetchSnapshotRequestPartitionSnapshot, (0, 1), array=True),
    )

    name: str = ""
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class FetchSnapshotRequest(Request[FetchSnapshotResponse]):
    """Versions 0 to 1, API key 59."""

    API_KEY: ClassVar[int] = 59
    NAME: ClassVar[str] = "FetchSnapshotRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field(
            "cluster_id",
            "string",
            (0, 1),
            nullable=(0, 1),
            tag=0,
            tagged=(0, 1),
            default=None,
        ),
        Field("replica_id", "int32", (0, 1), default=-1),
        Field("max_bytes", "int32", (0, 1), default=2147483647),
        Field("topics", FetchSnapshotRequestTopicSnapshot, (0, 1), array=True),
    )

    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[FetchSnapshotRequestTopicSnapshot] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[FetchSnapshotResponse]:
        """Return FetchSnapshotResponse."""
        return FetchSnapshotResponse
