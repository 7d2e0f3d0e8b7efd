"""DeleteShareGroupOffsetsRequest and DeleteShareGroupOffsetsResponse (API key 92), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsResponseTopic(Struct):
    """Part of DeleteShareGroupOffsetsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("topic_id", "uuid", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
    )

    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsResponse(Response):
    """Versions 0 to 0, API key 92."""

    API_KEY: ClassVar[int] = 92
    NAME: ClassVar[str] = "DeleteShareGroupOffsetsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
        Field("responses", DeleteShareGroupOffsetsResponseTopic, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequestTopic(Struct):
    """Part of DeleteShareGroupOffsetsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("topic_name", "string", (0, 0)),)

    topic_name: str = ""


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequest(Request[DeleteShareGroupOffsetsResponse]):
    """Versions 0 to 0, API key 92."""

    API_KEY: ClassVar[int] = 92
    NAME: ClassVar[str] = "DeleteShareGroupOffsetsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", DeleteShareGroupOffsetsRequestTopic, (0, 0), array=True),
    )

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DeleteShareGroupOffsetsResponse]:
        """Return DeleteShareGroupOffsetsResponse."""
        return DeleteShareGroupOffsetsResponse
