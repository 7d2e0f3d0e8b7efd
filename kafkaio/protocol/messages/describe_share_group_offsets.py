"""DescribeShareGroupOffsetsRequest and DescribeShareGroupOffsetsResponse (API key 90), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponsePartition(Struct):
    """Part of DescribeShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("lag", "int64", (1, 1), default=-1, ignorable=True),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
    )

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseTopic(Struct):
    """Part of DescribeShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("topic_id", "uuid", (0, 1)),
        Field(
            "partitions", DescribeShareGroupOffsetsResponsePartition, (0, 1), array=True
        ),
    )

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseGroup(Struct):
    """Part of DescribeShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", DescribeShareGroupOffsetsResponseTopic, (0, 1), array=True),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
    )

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default_factory=list)
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponse(Response):
    """Versions 0 to 1, API key 90."""

    API_KEY: ClassVar[int] = 90
    NAME: ClassVar[str] = "DescribeShareGroupOffsetsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("groups", DescribeShareGroupOffsetsResponseGroup, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestTopic(Struct):
    """Part of DescribeShareGroupOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestGroup(Struct):
    """Part of DescribeShareGroupOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field(
            "topics",
            DescribeShareGroupOffsetsRequestTopic,
            (0, 1),
            array=True,
            nullable=(0, 1),
        ),
    )

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequest(Request[DescribeShareGroupOffsetsResponse]):
    """Versions 0 to 1, API key 90."""

    API_KEY: ClassVar[int] = 90
    NAME: ClassVar[str] = "DescribeShareGroupOffsetsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("groups", DescribeShareGroupOffsetsRequestGroup, (0, 1), array=True),
    )

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeShareGroupOffsetsResponse]:
        """Return DescribeShareGroupOffsetsResponse."""
        return DescribeShareGroupOffsetsResponse
