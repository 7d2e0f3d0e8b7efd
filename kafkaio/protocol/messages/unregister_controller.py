"""UnregisterControllerRequest and UnregisterControllerResponse (API key 94), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
]


@dataclass(slots=True, kw_only=True)
class UnregisterControllerResponse(Response):
    """Versions 0 to 0, API key 94."""

    API_KEY: ClassVar[int] = 94
    NAME: ClassVar[str] = "UnregisterControllerResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class UnregisterControllerRequest(Request[UnregisterControllerResponse]):
    """Versions 0 to 0, API key 94."""

    API_KEY: ClassVar[int] = 94
    NAME: ClassVar[str] = "UnregisterControllerRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("controller_id", "int32", (0, 0)),)

    controller_id: int = 0

    @classmethod
    def response_type(cls) -> type[UnregisterControllerResponse]:
        """Return UnregisterControllerResponse."""
        return UnregisterControllerResponse
