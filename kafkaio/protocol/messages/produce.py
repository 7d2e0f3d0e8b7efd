"""ProduceRequest and ProduceResponse (API key 0), versions 3 to 13."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import (
    ZERO_UUID,
    Buffers,
    Field,
    Request,
    Response,
    Struct,
)

__all__ = [
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


@dataclass(slots=True, kw_only=True)
class BatchIndexAndErrorMessage(Struct):
    """Part of ProduceResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("batch_index", "int32", (8, 13)),
        Field(
            "batch_index_error_message",
            "string",
            (8, 13),
            nullable=(8, 13),
            default=None,
        ),
    )

    batch_index: int = 0
    batch_index_error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class LeaderIdAndEpoch(Struct):
    """Part of ProduceResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (10, 13), default=-1),
        Field("leader_epoch", "int32", (10, 13), default=-1),
    )

    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class PartitionProduceResponse(Struct):
    """Part of ProduceResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (3, 13)),
        Field("error_code", "int16", (3, 13)),
        Field("base_offset", "int64", (3, 13)),
        Field("log_append_time_ms", "int64", (3, 13), default=-1, ignorable=True),
        Field("log_start_offset", "int64", (5, 13), default=-1, ignorable=True),
        Field(
            "record_errors",
            BatchIndexAndErrorMessage,
            (8, 13),
            array=True,
            ignorable=True,
        ),
        Field(
            "error_message",
            "string",
            (8, 13),
            nullable=(8, 13),
            default=None,
            ignorable=True,
        ),
        Field("current_leader", LeaderIdAndEpoch, (10, 13), tag=0, tagged=(10, 13)),
    )

    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list)
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


@dataclass(slots=True, kw_only=True)
class TopicProduceResponse(Struct):
    """Part of ProduceResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 12), ignorable=True),
        Field("topic_id", "uuid", (13, 13), ignorable=True),
        Field("partition_responses", PartitionProduceResponse, (3, 13), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of ProduceResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (10, 13)),
        Field("host", "string", (10, 13)),
        Field("port", "int32", (10, 13)),
        Field("rack", "string", (10, 13), nullable=(10, 13), default=None),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True)
class ProduceResponse(Response):
    """Versions 3 to 13, API key 0."""

    API_KEY: ClassVar[int] = 0
    NAME: ClassVar[str] = "ProduceResponse"
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    LAST_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("responses", TopicProduceResponse, (3, 13), array=True),
        Field("throttle_time_ms", "int32", (3, 13), ignorable=True),
        Field(
            "node_endpoints", NodeEndpoint, (10, 13), array=True, tag=0, tagged=(10, 13)
        ),
    )

    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionProduceData(Struct):
    """Part of ProduceRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (3, 13)),
        Field("records", "records", (3, 13), nullable=(3, 13), default=None),
    )

    index: int = 0
    records: Buffers | None = None


@dataclass(slots=True, kw_only=True)
class TopicProduceData(Struct):
    """Part of ProduceRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 12), ignorable=True),
        Field("topic_id", "uuid", (13, 13), ignorable=True),
        Field("partition_data", PartitionProduceData, (3, 13), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_data: list[PartitionProduceData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ProduceRequest(Request[ProduceResponse]):
    """Versions 3 to 13, API key 0."""

    API_KEY: ClassVar[int] = 0
    NAME: ClassVar[str] = "ProduceRequest"
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    LAST_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (3, 13), nullable=(3, 13), default=None),
        Field("acks", "int16", (3, 13)),
        Field("timeout_ms", "int32", (3, 13)),
        Field("topic_data", TopicProduceData, (3, 13), array=True),
    )

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ProduceResponse]:
        """Return ProduceResponse."""
        return ProduceResponse
