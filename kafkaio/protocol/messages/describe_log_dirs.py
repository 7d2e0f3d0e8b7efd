"""DescribeLogDirsRequest and DescribeLogDirsResponse (API key 35), versions 1 to 5."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribableLogDirTopic",
    "DescribeLogDirsPartition",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResult",
    "DescribeLogDirsTopic",
]


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsPartition(Struct):
    """Part of DescribeLogDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 5)),
        Field("partition_size", "int64", (1, 5)),
        Field("offset_lag", "int64", (1, 5)),
        Field("is_future_key", "bool", (1, 5)),
    )

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsTopic(Struct):
    """Part of DescribeLogDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 5)),
        Field("partitions", DescribeLogDirsPartition, (1, 5), array=True),
    )

    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResult(Struct):
    """Part of DescribeLogDirsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 5)),
        Field("log_dir", "string", (1, 5)),
        Field("topics", DescribeLogDirsTopic, (1, 5), array=True),
        Field("total_bytes", "int64", (4, 5), default=-1, ignorable=True),
        Field("usable_bytes", "int64", (4, 5), default=-1, ignorable=True),
        Field("is_cordoned", "bool", (5, 5), ignorable=True),
    )

    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponse(Response):
    """Versions 1 to 5, API key 35."""

    API_KEY: ClassVar[int] = 35
    NAME: ClassVar[str] = "DescribeLogDirsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("error_code", "int16", (3, 5), ignorable=True),
        Field("results", DescribeLogDirsResult, (1, 5), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribableLogDirTopic(Struct):
    """Part of DescribeLogDirsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (1, 5)),
        Field("partitions", "int32", (1, 5), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """Versions 1 to 5, API key 35."""

    API_KEY: ClassVar[int] = 35
    NAME: ClassVar[str] = "DescribeLogDirsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", DescribableLogDirTopic, (1, 5), array=True, nullable=(1, 5)),
    )

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeLogDirsResponse]:
        """Return DescribeLogDirsResponse."""
        return DescribeLogDirsResponse
