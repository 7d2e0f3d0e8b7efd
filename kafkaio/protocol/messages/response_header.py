"""ResponseHeader, versions 0 to 1."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Header

__all__ = [
    "ResponseHeader",
]


@dataclass(slots=True, kw_only=True)
class ResponseHeader(Header):
    """Versions 0 to 1."""

    NAME: ClassVar[str] = "ResponseHeader"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("correlation_id", "int32", (0, 1)),)

    correlation_id: int = 0
