"""InitProducerIdRequest and InitProducerIdResponse (API key 22), versions 0 to 6."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]


@dataclass(slots=True, kw_only=True)
class InitProducerIdResponse(Response):
    """Versions 0 to 6, API key 22."""

    API_KEY: ClassVar[int] = 22
    NAME: ClassVar[str] = "InitProducerIdResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 6), ignorable=True),
        Field("error_code", "int16", (0, 6)),
        Field("producer_id", "int64", (0, 6), default=-1),
        Field("producer_epoch", "int16", (0, 6)),
        Field("ongoing_txn_producer_id", "int64", (6, 6), default=-1),
        Field("ongoing_txn_producer_epoch", "int16", (6, 6), default=-1),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """Versions 0 to 6, API key 22."""

    API_KEY: ClassVar[int] = 22
    NAME: ClassVar[str] = "InitProducerIdRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 6), nullable=(0, 6)),
        Field("transaction_timeout_ms", "int32", (0, 6)),
        Field("producer_id", "int64", (3, 6), default=-1),
        Field("producer_epoch", "int16", (3, 6), default=-1),
        Field("enable_2pc", "bool", (6, 6)),
        Field("keep_prepared_txn", "bool", (6, 6)),
    )

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable_2pc: bool = False
    keep_prepared_txn: bool = False

    @classmethod
    def response_type(cls) -> type[InitProducerIdResponse]:
        """Return InitProducerIdResponse."""
        return InitProducerIdResponse
