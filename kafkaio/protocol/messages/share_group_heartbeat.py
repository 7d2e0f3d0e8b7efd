"""ShareGroupHeartbeatRequest and ShareGroupHeartbeatResponse (API key 76), versions 1 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "Assignment",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "TopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class TopicPartitions(Struct):
    """Part of ShareGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 1)),
        Field("partitions", "int32", (1, 1), array=True),
    )

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Assignment(Struct):
    """Part of ShareGroupHeartbeatResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", TopicPartitions, (1, 1), array=True),
    )

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponse(Response):
    """Versions 1 to 1, API key 76."""

    API_KEY: ClassVar[int] = 76
    NAME: ClassVar[str] = "ShareGroupHeartbeatResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 1)),
        Field("error_code", "int16", (1, 1)),
        Field("error_message", "string", (1, 1), nullable=(1, 1), default=None),
        Field("member_id", "string", (1, 1), nullable=(1, 1), default=None),
        Field("member_epoch", "int32", (1, 1)),
        Field("heartbeat_interval_ms", "int32", (1, 1)),
        Field("assignment", Assignment, (1, 1), nullable=(1, 1), default=None),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse]):
    """Versions 1 to 1, API key 76."""

    API_KEY: ClassVar[int] = 76
    NAME: ClassVar[str] = "ShareGroupHeartbeatRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 1)),
        Field("member_id", "string", (1, 1)),
        Field("member_epoch", "int32", (1, 1)),
        Field("rack_id", "string", (1, 1), nullable=(1, 1), default=None),
        Field(
            "subscribed_topic_names",
            "string",
            (1, 1),
            array=True,
            nullable=(1, 1),
            default=None,
        ),
    )

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None

    @classmethod
    def response_type(cls) -> type[ShareGroupHeartbeatResponse]:
        """Return ShareGroupHeartbeatResponse."""
        return ShareGroupHeartbeatResponse
