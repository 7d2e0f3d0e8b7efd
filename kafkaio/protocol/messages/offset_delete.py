"""OffsetDeleteRequest and OffsetDeleteResponse (API key 47), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition(Struct):
    """Part of OffsetDeleteResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic(Struct):
    """Part of OffsetDeleteResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", OffsetDeleteResponsePartition, (0, 0), array=True),
    )

    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse(Response):
    """Versions 0 to 0, API key 47."""

    API_KEY: ClassVar[int] = 47
    NAME: ClassVar[str] = "OffsetDeleteResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("throttle_time_ms", "int32", (0, 0), ignorable=True),
        Field("topics", OffsetDeleteResponseTopic, (0, 0), array=True),
    )

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition(Struct):
    """Part of OffsetDeleteRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 0)),)

    partition_index: int = 0


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic(Struct):
    """Part of OffsetDeleteRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", OffsetDeleteRequestPartition, (0, 0), array=True),
    )

    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    """Versions 0 to 0, API key 47."""

    API_KEY: ClassVar[int] = 47
    NAME: ClassVar[str] = "OffsetDeleteRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", OffsetDeleteRequestTopic, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[OffsetDeleteResponse]:
        """Return OffsetDeleteResponse."""
        return OffsetDeleteResponse
