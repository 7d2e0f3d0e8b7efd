"""DeleteRecordsRequest and DeleteRecordsResponse (API key 21), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
]


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartitionResult(Struct):
    """Part of DeleteRecordsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("low_watermark", "int64", (0, 2)),
        Field("error_code", "int16", (0, 2)),
    )

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopicResult(Struct):
    """Part of DeleteRecordsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("partitions", DeleteRecordsPartitionResult, (0, 2), array=True),
    )

    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponse(Response):
    """Versions 0 to 2, API key 21."""

    API_KEY: ClassVar[int] = 21
    NAME: ClassVar[str] = "DeleteRecordsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("topics", DeleteRecordsTopicResult, (0, 2), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartition(Struct):
    """Part of DeleteRecordsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("offset", "int64", (0, 2)),
    )

    partition_index: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopic(Struct):
    """Part of DeleteRecordsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("partitions", DeleteRecordsPartition, (0, 2), array=True),
    )

    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    """Versions 0 to 2, API key 21."""

    API_KEY: ClassVar[int] = 21
    NAME: ClassVar[str] = "DeleteRecordsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteRecordsTopic, (0, 2), array=True),
        Field("timeout_ms", "int32", (0, 2)),
    )

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: int = 0

    @classmethod
    def response_type(cls) -> type[DeleteRecordsResponse]:
        """Return DeleteRecordsResponse."""
        return DeleteRecordsResponse
