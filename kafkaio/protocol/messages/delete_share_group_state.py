"""DeleteShareGroupStateRequest and DeleteShareGroupStateResponse (API key 86), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
    "DeleteStateData",
    "DeleteStateResult",
    "PartitionData",
    "PartitionResult",
]


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of DeleteShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
    )

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DeleteStateResult(Struct):
    """Part of DeleteShareGroupStateResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionResult, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupStateResponse(Response):
    """Versions 0 to 0, API key 86."""

    API_KEY: ClassVar[int] = 86
    NAME: ClassVar[str] = "DeleteShareGroupStateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("results", DeleteStateResult, (0, 0), array=True),
    )

    results: list[DeleteStateResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of DeleteShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("partition", "int32", (0, 0)),)

    partition: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteStateData(Struct):
    """Part of DeleteShareGroupStateRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", PartitionData, (0, 0), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupStateRequest(Request[DeleteShareGroupStateResponse]):
    """Versions 0 to 0, API key 86."""

    API_KEY: ClassVar[int] = 86
    NAME: ClassVar[str] = "DeleteShareGroupStateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", DeleteStateData, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[DeleteStateData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DeleteShareGroupStateResponse]:
        """Return DeleteShareGroupStateResponse."""
        return DeleteShareGroupStateResponse
