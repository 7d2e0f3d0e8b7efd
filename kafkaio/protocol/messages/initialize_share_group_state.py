"""InitializeShareGroupStateRequest and InitializeShareGroupStateResponse (API key 83), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "InitializeStateData",
    "InitializeStateResult",
    "PartitionData",
    "PartitionResult",
]


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of InitializeShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
    )

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class InitializeStateResult(Struct):
    """Part of InitializeShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionResult, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class InitializeShareGroupStateResponse(Response):
    """Versions 0 to 0, API key 83."""

    API_KEY: ClassVar[int] = 83
    NAME: ClassVar[str] = "InitializeShareGroupStateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("results", InitializeStateResult, (0, 0), array=True),
    )

    results: list[InitializeStateResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of InitializeShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("state_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
    )

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@dataclass(slots=True, kw_only=True)
class InitializeStateData(Struct):
    """Part of InitializeShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionData, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class InitializeShareGroupStateRequest(Request[InitializeShareGroupStateResponse]):
    """Versions 0 to 0, API key 83."""

    API_KEY: ClassVar[int] = 83
    NAME: ClassVar[str] = "InitializeShareGroupStateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", InitializeStateData, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[InitializeStateData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[InitializeShareGroupStateResponse]:
        """Return InitializeShareGroupStateResponse."""
        return InitializeShareGroupStateResponse
