"""ShareAcknowledgeRequest and ShareAcknowledgeResponse (API key 79), versions 1 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "AcknowledgePartition",
    "AcknowledgeTopic",
    "AcknowledgementBatch",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeTopicResponse",
]


@dataclass(slots=True, kw_only=True)
class LeaderIdAndEpoch(Struct):
    """Part of ShareAcknowledgeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (1, 2)),
        Field("leader_epoch", "int32", (1, 2)),
    )

    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionData(Struct):
    """Part of ShareAcknowledgeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2), default=None),
        Field("current_leader", LeaderIdAndEpoch, (1, 2)),
    )

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeTopicResponse(Struct):
    """Part of ShareAcknowledgeResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", PartitionData, (1, 2), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class NodeEndpoint(Struct):
    """Part of ShareAcknowledgeResponse."""

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
class ShareAcknowledgeResponse(Response):
    """Versions 1 to 2, API key 79."""

    API_KEY: ClassVar[int] = 79
    NAME: ClassVar[str] = "ShareAcknowledgeResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2), default=None),
        Field("acquisition_lock_timeout_ms", "int32", (2, 2), ignorable=True),
        Field("responses", ShareAcknowledgeTopicResponse, (1, 2), array=True),
        Field("node_endpoints", NodeEndpoint, (1, 2), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AcknowledgementBatch(Struct):
    """Part of ShareAcknowledgeRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (1, 2)),
        Field("last_offset", "int64", (1, 2)),
        Field("acknowledge_types", "int8", (1, 2), array=True),
    )

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AcknowledgePartition(Struct):
    """Part of ShareAcknowledgeRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("acknowledgement_batches", AcknowledgementBatch, (1, 2), array=True),
    )

    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AcknowledgeTopic(Struct):
    """Part of ShareAcknowledgeRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", AcknowledgePartition, (1, 2), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeRequest(Request[ShareAcknowledgeResponse]):
    """Versions 1 to 2, API key 79."""

    API_KEY: ClassVar[int] = 79
    NAME: ClassVar[str] = "ShareAcknowledgeRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 2), nullable=(1, 2), default=None),
        Field("member_id", "string", (1, 2), nullable=(1, 2)),
        Field("share_session_epoch", "int32", (1, 2)),
        Field("is_renew_ack", "bool", (2, 2)),
        Field("topics", AcknowledgeTopic, (1, 2), array=True),
    )

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[ShareAcknowledgeResponse]:
        """Return ShareAcknowledgeResponse."""
        return ShareAcknowledgeResponse
