"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse (API key 24), versions 0 to 5."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult",
    "AddPartitionsToTxnTransaction",
]


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnPartitionResult(Struct):
    """Part of AddPartitionsToTxnResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 5)),
        Field("partition_error_code", "int16", (0, 5)),
    )

    partition_index: int = 0
    partition_error_code: int = 0


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTopicResult(Struct):
    """Part of AddPartitionsToTxnResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field(
            "results_by_partition",
            AddPartitionsToTxnPartitionResult,
            (0, 5),
            array=True,
        ),
    )

    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResult(Struct):
    """Part of AddPartitionsToTxnResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (4, 5)),
        Field("topic_results", AddPartitionsToTxnTopicResult, (4, 5), array=True),
    )

    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponse(Response):
    """Versions 0 to 5, API key 24."""

    API_KEY: ClassVar[int] = 24
    NAME: ClassVar[str] = "AddPartitionsToTxnResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 5)),
        Field("error_code", "int16", (4, 5), ignorable=True),
        Field("results_by_transaction", AddPartitionsToTxnResult, (4, 5), array=True),
        Field(
            "results_by_topic_v3_and_below",
            AddPartitionsToTxnTopicResult,
            (0, 3),
            array=True,
        ),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        default_factory=list
    )


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTopic(Struct):
    """Part of AddPartitionsToTxnRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field("partitions", "int32", (0, 5), array=True),
    )

    name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTransaction(Struct):
    """Part of AddPartitionsToTxnRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (4, 5)),
        Field("producer_id", "int64", (4, 5)),
        Field("producer_epoch", "int16", (4, 5)),
        Field("verify_only", "bool", (4, 5)),
        Field("topics", AddPartitionsToTxnTopic, (4, 5), array=True),
    )

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """Versions 0 to 5, API key 24."""

    API_KEY: ClassVar[int] = 24
    NAME: ClassVar[str] = "AddPartitionsToTxnRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    LAST_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("transactions", AddPartitionsToTxnTransaction, (4, 5), array=True),
        Field("v3_and_below_transactional_id", "string", (0, 3)),
        Field("v3_and_below_producer_id", "int64", (0, 3)),
        Field("v3_and_below_producer_epoch", "int16", (0, 3)),
        Field("v3_and_below_topics", AddPartitionsToTxnTopic, (0, 3), array=True),
    )

    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[AddPartitionsToTxnResponse]:
        """Return AddPartitionsToTxnResponse."""
        return AddPartitionsToTxnResponse
