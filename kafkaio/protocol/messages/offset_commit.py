"""OffsetCommitRequest and OffsetCommitResponse (API key 8), versions 2 to 10."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponsePartition(Struct):
    """Part of OffsetCommitResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 10)),
        Field("error_code", "int16", (2, 10)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponseTopic(Struct):
    """Part of OffsetCommitResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 9), ignorable=True),
        Field("topic_id", "uuid", (10, 10), ignorable=True),
        Field("partitions", OffsetCommitResponsePartition, (2, 10), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponse(Response):
    """Versions 2 to 10, API key 8."""

    API_KEY: ClassVar[int] = 8
    NAME: ClassVar[str] = "OffsetCommitResponse"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    LAST_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 8
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 10), ignorable=True),
        Field("topics", OffsetCommitResponseTopic, (2, 10), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestPartition(Struct):
    """Part of OffsetCommitRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 10)),
        Field("committed_offset", "int64", (2, 10)),
        Field("committed_leader_epoch", "int32", (6, 10), default=-1, ignorable=True),
        Field("committed_metadata", "string", (2, 10), nullable=(2, 10)),
    )

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestTopic(Struct):
    """Part of OffsetCommitRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 9), ignorable=True),
        Field("topic_id", "uuid", (10, 10), ignorable=True),
        Field("partitions", OffsetCommitRequestPartition, (2, 10), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    """Versions 2 to 10, API key 8."""

    API_KEY: ClassVar[int] = 8
    NAME: ClassVar[str] = "OffsetCommitRequest"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    LAST_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 8
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (2, 10)),
        Field(
            "generation_id_or_member_epoch",
            "int32",
            (2, 10),
            default=-1,
            ignorable=True,
        ),
        Field("member_id", "string", (2, 10), ignorable=True),
        Field("group_instance_id", "string", (7, 10), nullable=(7, 10), default=None),
        Field("retention_time_ms", "int64", (2, 4), default=-1, ignorable=True),
        Field("topics", OffsetCommitRequestTopic, (2, 10), array=True),
    )

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[OffsetCommitResponse]:
        """Return OffsetCommitResponse."""
        return OffsetCommitResponse
