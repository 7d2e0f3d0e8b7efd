"""CreatePartitionsRequest and CreatePartitionsResponse (API key 37), versions 0 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
]


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopicResult(Struct):
    """Part of CreatePartitionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 3)),
        Field("error_code", "int16", (0, 3)),
        Field("error_message", "string", (0, 3), nullable=(0, 3), default=None),
    )

    name: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponse(Response):
    """Versions 0 to 3, API key 37."""

    API_KEY: ClassVar[int] = 37
    NAME: ClassVar[str] = "CreatePartitionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 3)),
        Field("results", CreatePartitionsTopicResult, (0, 3), array=True),
    )

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsAssignment(Struct):
    """Part of CreatePartitionsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_ids", "int32", (0, 3), array=True),
    )

    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopic(Struct):
    """Part of CreatePartitionsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 3)),
        Field("count", "int32", (0, 3)),
        Field(
            "assignments",
            CreatePartitionsAssignment,
            (0, 3),
            array=True,
            nullable=(0, 3),
        ),
    )

    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    """Versions 0 to 3, API key 37."""

    API_KEY: ClassVar[int] = 37
    NAME: ClassVar[str] = "CreatePartitionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatePartitionsTopic, (0, 3), array=True),
        Field("timeout_ms", "int32", (0, 3)),
        Field("validate_only", "bool", (0, 3)),
    )

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    validate_only: bool = False

    @classmethod
    def response_type(cls) -> type[CreatePartitionsResponse]:
        """Return CreatePartitionsResponse."""
        return CreatePartitionsResponse
