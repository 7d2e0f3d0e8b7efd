"""EnvelopeRequest and EnvelopeResponse (API key 58), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "EnvelopeRequest",
    "EnvelopeResponse",
]


@dataclass(slots=True, kw_only=True)
class EnvelopeResponse(Response):
    """Versions 0 to 0, API key 58."""

    API_KEY: ClassVar[int] = 58
    NAME: ClassVar[str] = "EnvelopeResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("response_data", "bytes", (0, 0), nullable=(0, 0), default=None),
        Field("error_code", "int16", (0, 0)),
    )

    response_data: bytes | None = None
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class EnvelopeRequest(Request[EnvelopeResponse]):
    """Versions 0 to 0, API key 58."""

    API_KEY: ClassVar[int] = 58
    NAME: ClassVar[str] = "EnvelopeRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("request_data", "bytes", (0, 0)),
        Field("request_principal", "bytes", (0, 0), nullable=(0, 0)),
        Field("client_host_address", "bytes", (0, 0)),
    )

    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""

    @classmethod
    def response_type(cls) -> type[EnvelopeResponse]:
        """Return EnvelopeResponse."""
        return EnvelopeResponse
