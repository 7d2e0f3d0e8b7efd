"""BrokerHeartbeatRequest and BrokerHeartbeatResponse (API key 63), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
]


@dataclass(slots=True, kw_only=True)
class BrokerHeartbeatResponse(Response):
    """Versions 0 to 2, API key 63."""

    API_KEY: ClassVar[int] = 63
    NAME: ClassVar[str] = "BrokerHeartbeatResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("is_caught_up", "bool", (0, 2)),
        Field("is_fenced", "bool", (0, 2), default=True),
        Field("should_shut_down", "bool", (0, 2)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(slots=True, kw_only=True)
class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    """Versions 0 to 2, API key 63."""

    API_KEY: ClassVar[int] = 63
    NAME: ClassVar[str] = "BrokerHeartbeatRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 2)),
        Field("broker_epoch", "int64", (0, 2), default=-1),
        Field("current_metadata_offset", "int64", (0, 2)),
        Field("want_fence", "bool", (0, 2)),
        Field("want_shut_down", "bool", (0, 2)),
        Field("offline_log_dirs", "uuid", (1, 2), array=True, tag=0, tagged=(1, 2)),
        Field(
            "cordoned_log_dirs",
            "uuid",
            (2, 2),
            array=True,
            nullable=(2, 2),
            tag=1,
            tagged=(2, 2),
            default=None,
        ),
    )

    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[UUID] = field(default_factory=list)
    cordoned_log_dirs: list[UUID] | None = None

    @classmethod
    def response_type(cls) -> type[BrokerHeartbeatResponse]:
        """Return BrokerHeartbeatResponse."""
        return BrokerHeartbeatResponse
