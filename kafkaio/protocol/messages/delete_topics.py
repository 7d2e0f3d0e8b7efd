"""DeleteTopicsRequest and DeleteTopicsResponse (API key 20), versions 1 to 6."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "DeletableTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


@dataclass(slots=True, kw_only=True)
class DeletableTopicResult(Struct):
    """Part of DeleteTopicsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 6), nullable=(6, 6)),
        Field("topic_id", "uuid", (6, 6), ignorable=True),
        Field("error_code", "int16", (1, 6)),
        Field(
            "error_message",
            "string",
            (5, 6),
            nullable=(5, 6),
            default=None,
            ignorable=True,
        ),
    )

    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class DeleteTopicsResponse(Response):
    """Versions 1 to 6, API key 20."""

    API_KEY: ClassVar[int] = 20
    NAME: ClassVar[str] = "DeleteTopicsResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6), ignorable=True),
        Field("responses", DeletableTopicResult, (1, 6), array=True),
    )

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteTopicState(Struct):
    """Part of DeleteTopicsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (6, 6), nullable=(6, 6), default=None),
        Field("topic_id", "uuid", (6, 6)),
    )

    name: str | None = None
    topic_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True)
class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    """Versions 1 to 6, API key 20."""

    API_KEY: ClassVar[int] = 20
    NAME: ClassVar[str] = "DeleteTopicsRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteTopicState, (6, 6), array=True),
        Field("topic_names", "string", (1, 5), array=True, ignorable=True),
        Field("timeout_ms", "int32", (1, 6)),
    )

    topics: list[DeleteTopicState] = field(default_factory=list)
    topic_names: list[str] = field(default_factory=list)
    timeout_ms: int = 0

    @classmethod
    def response_type(cls) -> type[DeleteTopicsResponse]:
        """Return DeleteTopicsResponse."""
        return DeleteTopicsResponse
