"""DescribeProducersRequest and DescribeProducersResponse (API key 61), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "PartitionResponse",
    "ProducerState",
    "TopicRequest",
    "TopicResponse",
]


@dataclass(slots=True, kw_only=True)
class ProducerState(Struct):
    """Part of DescribeProducersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (0, 0)),
        Field("producer_epoch", "int32", (0, 0)),
        Field("last_sequence", "int32", (0, 0), default=-1),
        Field("last_timestamp", "int64", (0, 0), default=-1),
        Field("coordinator_epoch", "int32", (0, 0)),
        Field("current_txn_start_offset", "int64", (0, 0), default=-1),
    )

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


@dataclass(slots=True, kw_only=True)
class PartitionResponse(Struct):
    """Part of DescribeProducersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), default=None),
        Field("active_producers", ProducerState, (0, 0), array=True),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicResponse(Struct):
    """Part of DescribeProducersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", PartitionResponse, (0, 0), array=True),
    )

    name: str = ""
    partitions: list[PartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponse(Response):
    """Versions 0 to 0, API key 61."""

    API_KEY: ClassVar[int] = 61
    NAME: ClassVar[str] = "DescribeProducersResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("topics", TopicResponse, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicRequest(Struct):
    """Part of DescribeProducersRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partition_indexes", "int32", (0, 0), array=True),
    )

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """Versions 0 to 0, API key 61."""

    API_KEY: ClassVar[int] = 61
    NAME: ClassVar[str] = "DescribeProducersRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, (0, 0), array=True),
    )

    topics: list[TopicRequest] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeProducersResponse]:
        """Return DescribeProducersResponse."""
        return DescribeProducersResponse
