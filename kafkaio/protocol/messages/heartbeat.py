"""HeartbeatRequest and HeartbeatResponse (API key 12), versions 0 to 4."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
]


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse(Response):
    """Versions 0 to 4, API key 12."""

    API_KEY: ClassVar[int] = 12
    NAME: ClassVar[str] = "HeartbeatResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 4), ignorable=True),
        Field("error_code", "int16", (0, 4)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest(Request[HeartbeatResponse]):
    """Versions 0 to 4, API key 12."""

    API_KEY: ClassVar[int] = 12
    NAME: ClassVar[str] = "HeartbeatRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 4)),
        Field("generation_id", "int32", (0, 4)),
        Field("member_id", "string", (0, 4)),
        Field("group_instance_id", "string", (3, 4), nullable=(3, 4), default=None),
    )

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None

    @classmethod
    def response_type(cls) -> type[HeartbeatResponse]:
        """Return HeartbeatResponse."""
        return HeartbeatResponse
