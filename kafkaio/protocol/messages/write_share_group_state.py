"""WriteShareGroupStateRequest and WriteShareGroupStateResponse (API key 85), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "PartitionData",
    "PartitionResult",
    "StateBatch",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteStateData",
    "WriteStateResult",
]


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of WriteShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
    )

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class WriteStateResult(Struct):
    """Part of WriteShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", PartitionResult, (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WriteShareGroupStateResponse(Response):
    """Versions 0 to 1, API key 85."""

    API_KEY: ClassVar[int] = 85
    NAME: ClassVar[str] = "WriteShareGroupStateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("results", WriteStateResult, (0, 1), array=True),
    )

    results: list[WriteStateResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StateBatch(Struct):
    """Part of WriteShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (0, 1)),
        Field("last_offset", "int64", (0, 1)),
        Field("delivery_state", "int8", (0, 1)),
        Field("delivery_count", "int16", (0, 1)),
    )

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of WriteShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("state_epoch", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("delivery_complete_count", "int32", (1, 1), default=-1, ignorable=True),
        Field("state_batches", StateBatch, (0, 1), array=True),
    )

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WriteStateData(Struct):
    """Part of WriteShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", PartitionData, (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WriteShareGroupStateRequest(Request[WriteShareGroupStateResponse]):
    """Versions 0 to 1, API key 85."""

    API_KEY: ClassVar[int] = 85
    NAME: ClassVar[str] = "WriteShareGroupStateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", WriteStateData, (0, 1), array=True),
    )

    group_id: str = ""
    topics: list[WriteStateData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[WriteShareGroupStateResponse]:
        """Return WriteShareGroupStateResponse."""
        return WriteShareGroupStateResponse
