"""AlterPartitionRequest and AlterPartitionResponse (API key 56), versions 2 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "AlterPartitionRequest",
    "AlterPartitionRequestPartitionData",
    "AlterPartitionRequestTopicData",
    "AlterPartitionResponse",
    "AlterPartitionResponsePartitionData",
    "AlterPartitionResponseTopicData",
    "BrokerState",
]


@dataclass(slots=True, kw_only=True)
class AlterPartitionResponsePartitionData(Struct):
    """Part of AlterPartitionResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 3)),
        Field("error_code", "int16", (2, 3)),
        Field("leader_id", "int32", (2, 3)),
        Field("leader_epoch", "int32", (2, 3)),
        Field("isr", "int32", (2, 3), array=True),
        Field("leader_recovery_state", "int8", (2, 3), ignorable=True),
        Field("partition_epoch", "int32", (2, 3)),
    )

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class AlterPartitionResponseTopicData(Struct):
    """Part of AlterPartitionResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (2, 3), ignorable=True),
        Field("partitions", AlterPartitionResponsePartitionData, (2, 3), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[AlterPartitionResponsePartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionResponse(Response):
    """Versions 2 to 3, API key 56."""

    API_KEY: ClassVar[int] = 56
    NAME: ClassVar[str] = "AlterPartitionResponse"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 3)),
        Field("error_code", "int16", (2, 3)),
        Field("topics", AlterPartitionResponseTopicData, (2, 3), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[AlterPartitionResponseTopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class BrokerState(Struct):
    """Part of AlterPartitionRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (3, 3)),
        Field("broker_epoch", "int64", (3, 3), default=-1),
    )

    broker_id: int = 0
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class AlterPartitionRequestPartitionData(Struct):
    """Part of AlterPartitionRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 3)),
        Field("leader_epoch", "int32", (2, 3)),
        Field("new_isr", "int32", (2, 2), array=True),
        Field("new_isr_with_epochs", BrokerState, (3, 3), array=True),
        Field("leader_recovery_state", "int8", (2, 3)),
        Field("partition_epoch", "int32", (2, 3)),
    )

    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: list[int] = field(default_factory=list)
    new_isr_with_epochs: list[BrokerState] = field(default_factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(slots=True, kw_only=True)
class AlterPartitionRequestTopicData(Struct):
    """Part of AlterPartitionRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (2, 3), ignorable=True),
        Field("partitions", AlterPartitionRequestPartitionData, (2, 3), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[AlterPartitionRequestPartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """Versions 2 to 3, API key 56."""

    API_KEY: ClassVar[int] = 56
    NAME: ClassVar[str] = "AlterPartitionRequest"
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (2, 3)),
        Field("broker_epoch", "int64", (2, 3), default=-1),
        Field("topics", AlterPartitionRequestTopicData, (2, 3), array=True),
    )

    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[AlterPartitionRequestTopicData] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AlterPartitionResponse]:
        """Return AlterPartitionResponse."""
        return AlterPartitionResponse
