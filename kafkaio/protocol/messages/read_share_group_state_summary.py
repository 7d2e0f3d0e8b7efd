"""ReadShareGroupStateSummaryRequest and ReadShareGroupStateSummaryResponse (API key 87), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryResponse",
    "ReadStateSummaryData",
    "ReadStateSummaryResult",
]


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of ReadShareGroupStateSummaryResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
        Field("state_epoch", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("delivery_complete_count", "int32", (1, 1), default=-1, ignorable=True),
    )

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


@dataclass(slots=True, kw_only=True)
class ReadStateSummaryResult(Struct):
    """Part of ReadShareGroupStateSummaryResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", PartitionResult, (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReadShareGroupStateSummaryResponse(Response):
    """Versions 0 to 1, API key 87."""

    API_KEY: ClassVar[int] = 87
    NAME: ClassVar[str] = "ReadShareGroupStateSummaryResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("results", ReadStateSummaryResult, (0, 1), array=True),
    )

    results: list[ReadStateSummaryResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of ReadShareGroupStateSummaryRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )

    partition: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class ReadStateSummaryData(Struct):
    """Part of ReadShareGroupStateSummaryRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", PartitionData, (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReadShareGroupStateSummaryRequest(Request[ReadShareGroupStateSummaryResponse]):
    """Versions 0 to 1, API key 87."""

    API_KEY: ClassVar[int] = 87
    NAME: ClassVar[str] = "ReadShareGroupStateSummaryRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", ReadStateSummaryData, (0, 1), array=True),
    )

    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ReadShareGroupStateSummaryResponse]:
        """Return ReadShareGroupStateSummaryResponse."""
        return ReadShareGroupStateSummaryResponse
