"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse (API key 34), versions 1 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult",
    "AlterReplicaLogDirTopic",
    "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
]


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirPartitionResult(Struct):
    """Part of AlterReplicaLogDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirTopicResult(Struct):
    """Part of AlterReplicaLogDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (1, 2)),
        Field("partitions", AlterReplicaLogDirPartitionResult, (1, 2), array=True),
    )

    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirsResponse(Response):
    """Versions 1 to 2, API key 34."""

    API_KEY: ClassVar[int] = 34
    NAME: ClassVar[str] = "AlterReplicaLogDirsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 2)),
        Field("results", AlterReplicaLogDirTopicResult, (1, 2), array=True),
    )

    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirTopic(Struct):
    """Part of AlterReplicaLogDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partitions", "int32", (1, 2), array=True),
    )

    name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDir(Struct):
    """Part of AlterReplicaLogDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("path", "string", (1, 2)),
        Field("topics", AlterReplicaLogDirTopic, (1, 2), array=True),
    )

    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse]):
    """Versions 1 to 2, API key 34."""

    API_KEY: ClassVar[int] = 34
    NAME: ClassVar[str] = "AlterReplicaLogDirsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("dirs", AlterReplicaLogDir, (1, 2), array=True),
    )

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AlterReplicaLogDirsResponse]:
        """Return AlterReplicaLogDirsResponse."""
        return AlterReplicaLogDirsResponse
