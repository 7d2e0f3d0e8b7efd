"""ConsumerGroupHeartbeatRequest and ConsumerGroupHeartbeatResponse (API key 68), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "Assignment",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatRequestTopicPartitions",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupHeartbeatResponseTopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    """Part of ConsumerGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of ConsumerGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field(
            "topic_partitions",
            ConsumerGroupHeartbeatResponseTopicPartitions,
            (0, 1),
            array=True,
        ),
    )

    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse(Response):
    """Versions 0 to 1, API key 68."""

    API_KEY: ClassVar[int] = 68
    NAME: ClassVar[str] = "ConsumerGroupHeartbeatResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), default=None),
        Field("member_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("member_epoch", "int32", (0, 1)),
        Field("heartbeat_interval_ms", "int32", (0, 1)),
        Field("assignment", Assignment, (0, 1), nullable=(0, 1), default=None),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    """Part of ConsumerGroupHeartbeatRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", "int32", (0, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    """Versions 0 to 1, API key 68."""

    API_KEY: ClassVar[int] = 68
    NAME: ClassVar[str] = "ConsumerGroupHeartbeatRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rack_id", "string", (0, 1), nullable=(0, 1), default=None),
        Field("rebalance_timeout_ms", "int32", (0, 1), default=-1),
        Field(
            "subscribed_topic_names",
            "string",
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
        Field(
            "subscribed_topic_regex", "string", (1, 1), nullable=(1, 1), default=None
        ),
        Field("server_assignor", "string", (0, 1), nullable=(0, 1), default=None),
        Field(
            "topic_partitions",
            ConsumerGroupHeartbeatRequestTopicPartitions,
            (0, 1),
            array=True,
            nullable=(0, 1),
            default=None,
        ),
    )

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None

    @classmethod
    def response_type(cls) -> type[ConsumerGroupHeartbeatResponse]:
        """Return ConsumerGroupHeartbeatResponse."""
        return ConsumerGroupHeartbeatResponse
