"""AlterPartitionReassignmentsRequest and AlterPartitionReassignmentsResponse (API key 45), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
]


@dataclass(slots=True, kw_only=True)
class ReassignablePartitionResponse(Struct):
    """Part of AlterPartitionReassignmentsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class ReassignableTopicResponse(Struct):
    """Part of AlterPartitionReassignmentsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", ReassignablePartitionResponse, (0, 1), array=True),
    )

    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse(Response):
    """Versions 0 to 1, API key 45."""

    API_KEY: ClassVar[int] = 45
    NAME: ClassVar[str] = "AlterPartitionReassignmentsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field(
            "allow_replication_factor_change",
            "bool",
            (1, 1),
            default=True,
            ignorable=True,
        ),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("responses", ReassignableTopicResponse, (0, 1), array=True),
    )

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReassignablePartition(Struct):
    """Part of AlterPartitionReassignmentsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("replicas", "int32", (0, 1), array=True, nullable=(0, 1), default=None),
    )

    partition_index: int = 0
    replicas: list[int] | None = None


@dataclass(slots=True, kw_only=True)
class ReassignableTopic(Struct):
    """Part of AlterPartitionReassignmentsRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", ReassignablePartition, (0, 1), array=True),
    )

    name: str = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Versions 0 to 1, API key 45."""

    API_KEY: ClassVar[int] = 45
    NAME: ClassVar[str] = "AlterPartitionReassignmentsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 1), default=60000),
        Field("allow_replication_factor_change", "bool", (1, 1), default=True),
        Field("topics", ReassignableTopic, (0, 1), array=True),
    )

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AlterPartitionReassignmentsResponse]:
        """Return AlterPartitionReassignmentsResponse."""
        return AlterPartitionReassignmentsResponse
