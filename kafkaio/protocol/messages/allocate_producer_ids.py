"""AllocateProducerIdsRequest and AllocateProducerIdsResponse (API key 67), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response

__all__ = [
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
]


@dataclass(slots=True, kw_only=True)
class AllocateProducerIdsResponse(Response):
    """Versions 0 to 0, API key 67."""

    API_KEY: ClassVar[int] = 67
    NAME: ClassVar[str] = "AllocateProducerIdsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("producer_id_start", "int64", (0, 0)),
        Field("producer_id_len", "int32", (0, 0)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0


@dataclass(slots=True, kw_only=True)
class AllocateProducerIdsRequest(Request[AllocateProducerIdsResponse]):
    """Versions 0 to 0, API key 67."""

    API_KEY: ClassVar[int] = 67
    NAME: ClassVar[str] = "AllocateProducerIdsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0), default=-1),
    )

    broker_id: int = 0
    broker_epoch: int = -1

    @classmethod
    def response_type(cls) -> type[AllocateProducerIdsResponse]:
        """Return AllocateProducerIdsResponse."""
        return AllocateProducerIdsResponse
