"""ListTransactionsRequest and ListTransactionsResponse (API key 66), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "TransactionState",
]


@dataclass(slots=True, kw_only=True)
class TransactionState(Struct):
    """Part of ListTransactionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 2)),
        Field("producer_id", "int64", (0, 2)),
        Field("transaction_state", "string", (0, 2)),
    )

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


@dataclass(slots=True, kw_only=True)
class ListTransactionsResponse(Response):
    """Versions 0 to 2, API key 66."""

    API_KEY: ClassVar[int] = 66
    NAME: ClassVar[str] = "ListTransactionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("unknown_state_filters", "string", (0, 2), array=True),
        Field("transaction_states", TransactionState, (0, 2), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    """Versions 0 to 2, API key 66."""

    API_KEY: ClassVar[int] = 66
    NAME: ClassVar[str] = "ListTransactionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("state_filters", "string", (0, 2), array=True),
        Field("producer_id_filters", "int64", (0, 2), array=True),
        Field("duration_filter", "int64", (1, 2), default=-1),
        Field(
            "transactional_id_pattern", "string", (2, 2), nullable=(2, 2), default=None
        ),
    )

    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    @classmethod
    def response_type(cls) -> type[ListTransactionsResponse]:
        """Return ListTransactionsResponse."""
        return ListTransactionsResponse
