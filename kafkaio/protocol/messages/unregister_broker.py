"""UnregisterBrokerRequest and UnregisterBrokerResponse (API key 64), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
]


@dataclass(slots=True, kw_only=True)
class UnregisterBrokerResponse(Response):
    """Versions 0 to 0, API key 64."""

    API_KEY: ClassVar[int] = 64
    NAME: ClassVar[str] = "UnregisterBrokerResponse"
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
class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    """Versions 0 to 0, API key 64."""

    API_KEY: ClassVar[int] = 64
    NAME: ClassVar[str] = "UnregisterBrokerRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("broker_id", "int32", (0, 0)),)

    broker_id: int = 0

    @classmethod
    def response_type(cls) -> type[UnregisterBrokerResponse]:
        """Return UnregisterBrokerResponse."""
        return UnregisterBrokerResponse
