"""OffsetFetchRequest and OffsetFetchResponse (API key 9), versions 1 to 10."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartition(Struct):
    """Part of OffsetFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 7)),
        Field("committed_offset", "int64", (1, 7)),
        Field("committed_leader_epoch", "int32", (5, 7), default=-1, ignorable=True),
        Field("metadata", "string", (1, 7), nullable=(1, 7)),
        Field("error_code", "int16", (1, 7)),
    )

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopic(Struct):
    """Part of OffsetFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 7)),
        Field("partitions", OffsetFetchResponsePartition, (1, 7), array=True),
    )

    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartitions(Struct):
    """Part of OffsetFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (8, 10)),
        Field("committed_offset", "int64", (8, 10)),
        Field("committed_leader_epoch", "int32", (8, 10), default=-1, ignorable=True),
        Field("metadata", "string", (8, 10), nullable=(8, 10)),
        Field("error_code", "int16", (8, 10)),
    )

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopics(Struct):
    """Part of OffsetFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (8, 9), ignorable=True),
        Field("topic_id", "uuid", (10, 10), ignorable=True),
        Field("partitions", OffsetFetchResponsePartitions, (8, 10), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseGroup(Struct):
    """Part of OffsetFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (8, 10)),
        Field("topics", OffsetFetchResponseTopics, (8, 10), array=True),
        Field("error_code", "int16", (8, 10)),
    )

    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponse(Response):
    """Versions 1 to 10, API key 9."""

    API_KEY: ClassVar[int] = 9
    NAME: ClassVar[str] = "OffsetFetchResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    LAST_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 10), ignorable=True),
        Field("topics", OffsetFetchResponseTopic, (1, 7), array=True),
        Field("error_code", "int16", (2, 7), ignorable=True),
        Field("groups", OffsetFetchResponseGroup, (8, 10), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list)
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopic(Struct):
    """Part of OffsetFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 7)),
        Field("partition_indexes", "int32", (1, 7), array=True),
    )

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopics(Struct):
    """Part of OffsetFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (8, 9), ignorable=True),
        Field("topic_id", "uuid", (10, 10), ignorable=True),
        Field("partition_indexes", "int32", (8, 10), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestGroup(Struct):
    """Part of OffsetFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (8, 10)),
        Field(
            "member_id",
            "string",
            (9, 10),
            nullable=(9, 10),
            default=None,
            ignorable=True,
        ),
        Field("member_epoch", "int32", (9, 10), default=-1, ignorable=True),
        Field(
            "topics", OffsetFetchRequestTopics, (8, 10), array=True, nullable=(8, 10)
        ),
    )

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    """Versions 1 to 10, API key 9."""

    API_KEY: ClassVar[int] = 9
    NAME: ClassVar[str] = "OffsetFetchRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    LAST_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 7)),
        Field("topics", OffsetFetchRequestTopic, (1, 7), array=True, nullable=(2, 7)),
        Field("groups", OffsetFetchRequestGroup, (8, 10), array=True),
        Field("require_stable", "bool", (7, 10)),
    )

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list)
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list)
    require_stable: bool = False

    @classmethod
    def response_type(cls) -> type[OffsetFetchResponse]:
        """Return OffsetFetchResponse."""
        return OffsetFetchResponse
