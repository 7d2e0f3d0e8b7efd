"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse (API key 46), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
]


@dataclass(slots=True, kw_only=True)
class OngoingPartitionReassignment(Struct):
    """Part of ListPartitionReassignmentsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("replicas", "int32", (0, 0), array=True),
        Field("adding_replicas", "int32", (0, 0), array=True),
        Field("removing_replicas", "int32", (0, 0), array=True),
    )

    partition_index: int = 0
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OngoingTopicReassignment(Struct):
    """Part of ListPartitionReassignmentsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", OngoingPartitionReassignment, (0, 0), array=True),
    )

    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponse(Response):
    """Versions 0 to 0, API key 46."""

    API_KEY: ClassVar[int] = 46
    NAME: ClassVar[str] = "ListPartitionReassignmentsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("topics", OngoingTopicReassignment, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsTopics(Struct):
    """Part of ListPartitionReassignmentsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partition_indexes", "int32", (0, 0), array=True),
    )

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """Versions 0 to 0, API key 46."""

    API_KEY: ClassVar[int] = 46
    NAME: ClassVar[str] = "ListPartitionReassignmentsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 0), default=60000),
        Field(
            "topics",
            ListPartitionReassignmentsTopics,
            (0, 0),
            array=True,
            nullable=(0, 0),
            default=None,
        ),
    )

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None

    @classmethod
    def response_type(cls) -> type[ListPartitionReassignmentsResponse]:
        """Return ListPartitionReassignmentsResponse."""
        return ListPartitionReassignmentsResponse
