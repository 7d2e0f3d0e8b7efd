"""SaslHandshakeRequest and SaslHandshakeResponse (API key 17), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
]


@dataclass(slots=True, kw_only=True)
class SaslHandshakeResponse(Response):
    """Versions 0 to 1, API key 17."""

    API_KEY: ClassVar[int] = 17
    NAME: ClassVar[str] = "SaslHandshakeResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("mechanisms", "string", (0, 1), array=True),
    )

    error_code: int = 0
    mechanisms: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """Versions 0 to 1, API key 17."""

    API_KEY: ClassVar[int] = 17
    NAME: ClassVar[str] = "SaslHandshakeRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("mechanism", "string", (0, 1)),)

    mechanism: str = ""

    @classmethod
    def response_type(cls) -> type[SaslHandshakeResponse]:
        """Return SaslHandshakeResponse."""
        return SaslHandshakeResponse
