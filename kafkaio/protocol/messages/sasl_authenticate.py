"""SaslAuthenticateRequest and SaslAuthenticateResponse (API key 36), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
]


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateResponse(Response):
    """Versions 0 to 2, API key 36."""

    API_KEY: ClassVar[int] = 36
    NAME: ClassVar[str] = "SaslAuthenticateResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
        Field("auth_bytes", "bytes", (0, 2)),
        Field("session_lifetime_ms", "int64", (1, 2), ignorable=True),
    )

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = field(default=b"", repr=False)
    session_lifetime_ms: int = 0


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """Versions 0 to 2, API key 36."""

    API_KEY: ClassVar[int] = 36
    NAME: ClassVar[str] = "SaslAuthenticateRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("auth_bytes", "bytes", (0, 2)),)

    auth_bytes: bytes = field(default=b"", repr=False)

    @classmethod
    def response_type(cls) -> type[SaslAuthenticateResponse]:
        """Return SaslAuthenticateResponse."""
        return SaslAuthenticateResponse
