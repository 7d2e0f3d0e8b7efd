"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse (API key 25), versions 0 to 4."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
]


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnResponse(Response):
    """Versions 0 to 4, API key 25."""

    API_KEY: ClassVar[int] = 25
    NAME: ClassVar[str] = "AddOffsetsToTxnResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 4)),
        Field("error_code", "int16", (0, 4)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """Versions 0 to 4, API key 25."""

    API_KEY: ClassVar[int] = 25
    NAME: ClassVar[str] = "AddOffsetsToTxnRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    LAST_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 4)),
        Field("producer_id", "int64", (0, 4)),
        Field("producer_epoch", "int16", (0, 4)),
        Field("group_id", "string", (0, 4)),
    )

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

    @classmethod
    def response_type(cls) -> type[AddOffsetsToTxnResponse]:
        """Return AddOffsetsToTxnResponse."""
        return AddOffsetsToTxnResponse
