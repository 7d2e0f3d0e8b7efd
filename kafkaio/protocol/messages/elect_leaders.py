"""ElectLeadersRequest and ElectLeadersResponse (API key 43), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "PartitionResult",
    "ReplicaElectionResult",
    "TopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class PartitionResult(Struct):
    """Part of ElectLeadersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
    )

    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class ReplicaElectionResult(Struct):
    """Part of ElectLeadersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 2)),
        Field("partition_result", PartitionResult, (0, 2), array=True),
    )

    topic: str = ""
    partition_result: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponse(Response):
    """Versions 0 to 2, API key 43."""

    API_KEY: ClassVar[int] = 43
    NAME: ClassVar[str] = "ElectLeadersResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("replica_election_results", ReplicaElectionResult, (0, 2), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicPartitions(Struct):
    """Part of ElectLeadersRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 2)),
        Field("partitions", "int32", (0, 2), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    """Versions 0 to 2, API key 43."""

    API_KEY: ClassVar[int] = 43
    NAME: ClassVar[str] = "ElectLeadersRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("election_type", "int8", (1, 2)),
        Field("topic_partitions", TopicPartitions, (0, 2), array=True, nullable=(0, 2)),
        Field("timeout_ms", "int32", (0, 2), default=60000),
    )

    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    timeout_ms: int = 60000

    @classmethod
    def response_type(cls) -> type[ElectLeadersResponse]:
        """Return ElectLeadersResponse."""
        return ElectLeadersResponse
