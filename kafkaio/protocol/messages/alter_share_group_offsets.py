"""AlterShareGroupOffsetsRequest and AlterShareGroupOffsetsResponse (API key 91), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponsePartition(Struct):
    """Part of AlterShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponseTopic(Struct):
    """Part of AlterShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("topic_id", "uuid", (0, 0)),
        Field(
            "partitions", AlterShareGroupOffsetsResponsePartition, (0, 0), array=True
        ),
    )

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponse(Response):
    """Versions 0 to 0, API key 91."""

    API_KEY: ClassVar[int] = 91
    NAME: ClassVar[str] = "AlterShareGroupOffsetsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
        Field("responses", AlterShareGroupOffsetsResponseTopic, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequestPartition(Struct):
    """Part of AlterShareGroupOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
    )

    partition_index: int = 0
    start_offset: int = 0


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequestTopic(Struct):
    """Part of AlterShareGroupOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partitions", AlterShareGroupOffsetsRequestPartition, (0, 0), array=True),
    )

    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequest(Request[AlterShareGroupOffsetsResponse]):
    """Versions 0 to 0, API key 91."""

    API_KEY: ClassVar[int] = 91
    NAME: ClassVar[str] = "AlterShareGroupOffsetsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", AlterShareGroupOffsetsRequestTopic, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AlterShareGroupOffsetsResponse]:
        """Return AlterShareGroupOffsetsResponse."""
        return AlterShareGroupOffsetsResponse
