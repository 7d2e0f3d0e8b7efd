"""EndTxnRequest and EndTxnResponse (API key 26), versions 0 to 5."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "EndTxnRequest",
    "EndTxnResponse",
]


@dataclass(slots=True, kw_only=True)
class EndTxnResponse(Response):
    """Versions 0 to 5, API key 26."""

    API_KEY: ClassVar[int] = 26
    NAME: ClassVar[str] = "EndTxnResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 5)),
        Field("error_code", "int16", (0, 5)),
        Field("producer_id", "int64", (5, 5), default=-1, ignorable=True),
        Field("producer_epoch", "int16", (5, 5), default=-1, ignorable=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class EndTxnRequest(Request[EndTxnResponse]):
    """Versions 0 to 5, API key 26."""

    API_KEY: ClassVar[int] = 26
    NAME: ClassVar[str] = "EndTxnRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 5)),
        Field("producer_id", "int64", (0, 5)),
        Field("producer_epoch", "int16", (0, 5)),
        Field("committed", "bool", (0, 5)),
    )

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

    @classmethod
    def response_type(cls) -> type[EndTxnResponse]:
        """Return EndTxnResponse."""
        return EndTxnResponse
