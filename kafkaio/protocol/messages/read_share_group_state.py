"""ReadShareGroupStateRequest and ReadShareGroupStateResponse (API key 84), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadStateData",
    "ReadStateResult",
    "StateBatch",
]


@dataclass(slots=True, kw_only=True)
class StateBatch(Struct):
    """Part of ReadShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (0, 0)),
        Field("last_offset", "int64", (0, 0)),
        Field("delivery_state", "int8", (0, 0)),
        Field("delivery_count", "int16", (0, 0)),
    )

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of ReadShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
        Field("state_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
        Field("state_batches", StateBatch, (0, 0), array=True),
    )

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReadStateResult(Struct):
    """Part of ReadShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionResult, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReadShareGroupStateResponse(Response):
    """Versions 0 to 0, API key 84."""

    API_KEY: ClassVar[int] = 84
    NAME: ClassVar[str] = "ReadShareGroupStateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("results", ReadStateResult, (0, 0), array=True),
    )

    results: list[ReadStateResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of ReadShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0)),
    )

    partition: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class ReadStateData(Struct):
    """Part of ReadShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionData, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReadShareGroupStateRequest(Request[ReadShareGroupStateResponse]):
    """Versions 0 to 0, API key 84."""

    API_KEY: ClassVar[int] = 84
    NAME: ClassVar[str] = "ReadShareGroupStateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", ReadStateData, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[ReadStateData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ReadShareGroupStateResponse]:
        """Return ReadShareGroupStateResponse."""
        return ReadShareGroupStateResponse
