"""ShareFetchRequest and ShareFetchResponse (API key 78), versions 1 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import (
    ZERO_UUID,
    Buffer,
    Field,
    Request,
    Response,
    Struct,
)

__all__ = [
    "AcknowledgementBatch",
    "AcquiredRecords",
    "FetchPartition",
    "FetchTopic",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareFetchableTopicResponse",
]


@dataclass(slots=True, kw_only=True)
class LeaderIdAndEpoch(Struct):
    """Part of ShareFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (1, 2)),
        Field("leader_epoch", "int32", (1, 2)),
    )

    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class AcquiredRecords(Struct):
    """Part of ShareFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (1, 2)),
        Field("last_offset", "int64", (1, 2)),
        Field("delivery_count", "int16", (1, 2)),
    )

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of ShareFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2), default=None),
        Field("acknowledge_error_code", "int16", (1, 2)),
        Field(
            "acknowledge_error_message", "string", (1, 2), nullable=(1, 2), default=None
        ),
        Field("current_leader", LeaderIdAndEpoch, (1, 2)),
        Field("records", "records", (1, 2)),
        Field("acquired_records", AcquiredRecords, (1, 2), array=True),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Buffer = b""
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareFetchableTopicResponse(Struct):
    """Part of ShareFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", PartitionData, (1, 2), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of ShareFetchResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 2)),
        Field("host", "string", (1, 2)),
        Field("port", "int32", (1, 2)),
        Field("rack", "string", (1, 2), nullable=(1, 2), default=None),
    )

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True)
class ShareFetchResponse(Response):
    """Versions 1 to 2, API key 78."""

    API_KEY: ClassVar[int] = 78
    NAME: ClassVar[str] = "ShareFetchResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2), default=None),
        Field("acquisition_lock_timeout_ms", "int32", (1, 2)),
        Field("responses", ShareFetchableTopicResponse, (1, 2), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 2), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AcknowledgementBatch(Struct):
    """Part of ShareFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (1, 2)),
        Field("last_offset", "int64", (1, 2)),
        Field("acknowledge_types", "int8", (1, 2), array=True),
    )

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FetchPartition(Struct):
    """Part of ShareFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("acknowledgement_batches", AcknowledgementBatch, (1, 2), array=True),
    )

    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FetchTopic(Struct):
    """Part of ShareFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", FetchPartition, (1, 2), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ForgottenTopic(Struct):
    """Part of ShareFetchRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", "int32", (1, 2), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareFetchRequest(Request[ShareFetchResponse]):
    """Versions 1 to 2, API key 78."""

    API_KEY: ClassVar[int] = 78
    NAME: ClassVar[str] = "ShareFetchRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 2), nullable=(1, 2), default=None),
        Field("member_id", "string", (1, 2), nullable=(1, 2)),
        Field("share_session_epoch", "int32", (1, 2)),
        Field("max_wait_ms", "int32", (1, 2)),
        Field("min_bytes", "int32", (1, 2)),
        Field("max_bytes", "int32", (1, 2), default=2147483647),
        Field("max_records", "int32", (1, 2)),
        Field("batch_size", "int32", (1, 2)),
        Field("share_acquire_mode", "int8", (2, 2), ignorable=True),
        Field("is_renew_ack", "bool", (2, 2)),
        Field("topics", FetchTopic, (1, 2), array=True),
        Field("forgotten_topics_data", ForgottenTopic, (1, 2), array=True),
    )

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ShareFetchResponse]:
        """Return ShareFetchResponse."""
        return ShareFetchResponse
