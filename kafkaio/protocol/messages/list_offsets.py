"""ListOffsetsRequest and ListOffsetsResponse (API key 2), versions 1 to 11."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
]


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartitionResponse(Struct):
    """Part of ListOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 11)),
        Field("error_code", "int16", (1, 11)),
        Field("timestamp", "int64", (1, 11), default=-1),
        Field("offset", "int64", (1, 11), default=-1),
        Field("leader_epoch", "int32", (4, 11), default=-1),
    )

    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopicResponse(Struct):
    """Part of ListOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 11)),
        Field("partitions", ListOffsetsPartitionResponse, (1, 11), array=True),
    )

    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponse(Response):
    """Versions 1 to 11, API key 2."""

    API_KEY: ClassVar[int] = 2
    NAME: ClassVar[str] = "ListOffsetsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    LAST_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 11), ignorable=True),
        Field("topics", ListOffsetsTopicResponse, (1, 11), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartition(Struct):
    """Part of ListOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 11)),
        Field("current_leader_epoch", "int32", (4, 11), default=-1, ignorable=True),
        Field("timestamp", "int64", (1, 11)),
    )

    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopic(Struct):
    """Part of ListOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 11)),
        Field("partitions", ListOffsetsPartition, (1, 11), array=True),
    )

    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    """Versions 1 to 11, API key 2."""

    API_KEY: ClassVar[int] = 2
    NAME: ClassVar[str] = "ListOffsetsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    LAST_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (1, 11)),
        Field("isolation_level", "int8", (2, 11)),
        Field("topics", ListOffsetsTopic, (1, 11), array=True),
        Field("timeout_ms", "int32", (10, 11), ignorable=True),
    )

    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: int = 0

    @classmethod
    def response_type(cls) -> type[ListOffsetsResponse]:
        """Return ListOffsetsResponse."""
        return ListOffsetsResponse
