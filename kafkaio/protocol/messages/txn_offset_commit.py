"""TxnOffsetCommitRequest and TxnOffsetCommitResponse (API key 28), versions 0 to 6."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition(Struct):
    """Part of TxnOffsetCommitResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 6)),
        Field("error_code", "int16", (0, 6)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic(Struct):
    """Part of TxnOffsetCommitResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5), ignorable=True),
        Field("topic_id", "uuid", (6, 6), ignorable=True),
        Field("partitions", TxnOffsetCommitResponsePartition, (0, 6), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponse(Response):
    """Versions 0 to 6, API key 28."""

    API_KEY: ClassVar[int] = 28
    NAME: ClassVar[str] = "TxnOffsetCommitResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 6)),
        Field("topics", TxnOffsetCommitResponseTopic, (0, 6), array=True),
    )

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition(Struct):
    """Part of TxnOffsetCommitRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 6)),
        Field("committed_offset", "int64", (0, 6)),
        Field("committed_leader_epoch", "int32", (2, 6), default=-1, ignorable=True),
        Field("committed_metadata", "string", (0, 6), nullable=(0, 6)),
    )

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic(Struct):
    """Part of TxnOffsetCommitRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5), ignorable=True),
        Field("topic_id", "uuid", (6, 6), ignorable=True),
        Field("partitions", TxnOffsetCommitRequestPartition, (0, 6), array=True),
    )

    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Versions 0 to 6, API key 28."""

    API_KEY: ClassVar[int] = 28
    NAME: ClassVar[str] = "TxnOffsetCommitRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 6)),
        Field("group_id", "string", (0, 6)),
        Field("producer_id", "int64", (0, 6)),
        Field("producer_epoch", "int16", (0, 6)),
        Field("generation_id_or_member_epoch", "int32", (3, 6), default=-1),
        Field("member_id", "string", (3, 6)),
        Field("group_instance_id", "string", (3, 6), nullable=(3, 6), default=None),
        Field("topics", TxnOffsetCommitRequestTopic, (0, 6), array=True),
    )

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[TxnOffsetCommitResponse]:
        """Return TxnOffsetCommitResponse."""
        return TxnOffsetCommitResponse
