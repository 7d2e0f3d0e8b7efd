"""DescribeTransactionsRequest and DescribeTransactionsResponse (API key 65), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "TopicData",
    "TransactionState",
]


@dataclass(slots=True, kw_only=True)
class TopicData(Struct):
    """Part of DescribeTransactionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 0)),
        Field("partitions", "int32", (0, 0), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TransactionState(Struct):
    """Part of DescribeTransactionsResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("transactional_id", "string", (0, 0)),
        Field("transaction_state", "string", (0, 0)),
        Field("transaction_timeout_ms", "int32", (0, 0)),
        Field("transaction_start_time_ms", "int64", (0, 0)),
        Field("producer_id", "int64", (0, 0)),
        Field("producer_epoch", "int16", (0, 0)),
        Field("topics", TopicData, (0, 0), array=True),
    )

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponse(Response):
    """Versions 0 to 0, API key 65."""

    API_KEY: ClassVar[int] = 65
    NAME: ClassVar[str] = "DescribeTransactionsResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("transaction_states", TransactionState, (0, 0), array=True),
    )

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    """Versions 0 to 0, API key 65."""

    API_KEY: ClassVar[int] = 65
    NAME: ClassVar[str] = "DescribeTransactionsRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_ids", "string", (0, 0), array=True),
    )

    transactional_ids: list[str] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[DescribeTransactionsResponse]:
        """Return DescribeTransactionsResponse."""
        return DescribeTransactionsResponse
