"""AssignReplicasToDirsRequest and AssignReplicasToDirsResponse (API key 73), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsRequestDirectoryData",
    "AssignReplicasToDirsRequestPartitionData",
    "AssignReplicasToDirsRequestTopicData",
    "AssignReplicasToDirsResponse",
    "AssignReplicasToDirsResponseDirectoryData",
    "AssignReplicasToDirsResponsePartitionData",
    "AssignReplicasToDirsResponseTopicData",
]


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsResponsePartitionData(Struct):
    """Part of AssignReplicasToDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsResponseTopicData(Struct):
    """Part of AssignReplicasToDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field(
            "partitions", AssignReplicasToDirsResponsePartitionData, (0, 0), array=True
        ),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[AssignReplicasToDirsResponsePartitionData] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsResponseDirectoryData(Struct):
    """Part of AssignReplicasToDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", (0, 0)),
        Field("topics", AssignReplicasToDirsResponseTopicData, (0, 0), array=True),
    )

    id: UUID = ZERO_UUID
    topics: list[AssignReplicasToDirsResponseTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsResponse(Response):
    """Versions 0 to 0, API key 73."""

    API_KEY: ClassVar[int] = 73
    NAME: ClassVar[str] = "AssignReplicasToDirsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field(
            "directories", AssignReplicasToDirsResponseDirectoryData, (0, 0), array=True
        ),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[AssignReplicasToDirsResponseDirectoryData] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsRequestPartitionData(Struct):
    """Part of AssignReplicasToDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 0)),)

    partition_index: int = 0


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsRequestTopicData(Struct):
    """Part of AssignReplicasToDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field(
            "partitions", AssignReplicasToDirsRequestPartitionData, (0, 0), array=True
        ),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[AssignReplicasToDirsRequestPartitionData] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsRequestDirectoryData(Struct):
    """Part of AssignReplicasToDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", (0, 0)),
        Field("topics", AssignReplicasToDirsRequestTopicData, (0, 0), array=True),
    )

    id: UUID = ZERO_UUID
    topics: list[AssignReplicasToDirsRequestTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AssignReplicasToDirsRequest(Request[AssignReplicasToDirsResponse]):
    """Versions 0 to 0, API key 73."""

    API_KEY: ClassVar[int] = 73
    NAME: ClassVar[str] = "AssignReplicasToDirsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0), default=-1),
        Field(
            "directories", AssignReplicasToDirsRequestDirectoryData, (0, 0), array=True
        ),
    )

    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[AssignReplicasToDirsRequestDirectoryData] = field(
        default_factory=list
    )

    @classmethod
    def response_type(cls) -> type[AssignReplicasToDirsResponse]:
        """Return AssignReplicasToDirsResponse."""
        return AssignReplicasToDirsResponse
