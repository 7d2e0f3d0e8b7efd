"""RequestHeader, versions 1 to 2."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Header

__all__ = [
    "RequestHeader",
]


@dataclass(slots=True, kw_only=True)
class RequestHeader(Header):
    """Versions 1 to 2."""

    NAME: ClassVar[str] = "RequestHeader"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("request_api_key", "int16", (1, 2)),
        Field("request_api_version", "int16", (1, 2)),
        Field("correlation_id", "int32", (1, 2)),
        Field("client_id", "string", (1, 2), nullable=(1, 2), flexible=False),
    )

    request_api_key: int = 0
    request_api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""
