"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse (API key 23), versions 2 to 4."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "EpochEndOffset",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
]


@dataclass(slots=True, kw_only=True)
class EpochEndOffset(Struct):
    """Part of OffsetForLeaderEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (2, 4)),
        Field("partition", "int32", (2, 4)),
        Field("leader_epoch", "int32", (2, 4), default=-1, ignorable=True),
        Field("end_offset", "int64", (2, 4), default=-1),
    )

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopicResult(Struct):
    """Part of OffsetForLeaderEpochResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (2, 4)),
        Field("partitions", EpochEndOffset, (2, 4), array=True),
    )

    topic: str = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponse(Response):
    """Versions 2 to 4, API key 23."""

    API_KEY: ClassVar[int] = 23
    NAME: ClassVar[str] = "OffsetForLeaderEpochResponse"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 4), ignorable=True),
        Field("topics", OffsetForLeaderTopicResult, (2, 4), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderPartition(Struct):
    """Part of OffsetForLeaderEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (2, 4)),
        Field("current_leader_epoch", "int32", (2, 4), default=-1, ignorable=True),
        Field("leader_epoch", "int32", (2, 4)),
    )

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopic(Struct):
    """Part of OffsetForLeaderEpochRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (2, 4)),
        Field("partitions", OffsetForLeaderPartition, (2, 4), array=True),
    )

    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """Versions 2 to 4, API key 23."""

    API_KEY: ClassVar[int] = 23
    NAME: ClassVar[str] = "OffsetForLeaderEpochRequest"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (3, 4), default=-2, ignorable=True),
        Field("topics", OffsetForLeaderTopic, (2, 4), array=True),
    )

    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[OffsetForLeaderEpochResponse]:
        """Return OffsetForLeaderEpochResponse."""
        return OffsetForLeaderEpochResponse
