"""WriteTxnMarkersRequest and WriteTxnMarkersResponse (API key 27), versions 1 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "WritableTxnMarker",
    "WritableTxnMarkerPartitionResult",
    "WritableTxnMarkerResult",
    "WritableTxnMarkerTopic",
    "WritableTxnMarkerTopicResult",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerPartitionResult(Struct):
    """Part of WriteTxnMarkersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
    )

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerTopicResult(Struct):
    """Part of WriteTxnMarkersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partitions", WritableTxnMarkerPartitionResult, (1, 2), array=True),
    )

    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerResult(Struct):
    """Part of WriteTxnMarkersResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (1, 2)),
        Field("topics", WritableTxnMarkerTopicResult, (1, 2), array=True),
    )

    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponse(Response):
    """Versions 1 to 2, API key 27."""

    API_KEY: ClassVar[int] = 27
    NAME: ClassVar[str] = "WriteTxnMarkersResponse"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarkerResult, (1, 2), array=True),
    )

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarkerTopic(Struct):
    """Part of WriteTxnMarkersRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partition_indexes", "int32", (1, 2), array=True),
    )

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WritableTxnMarker(Struct):
    """Part of WriteTxnMarkersRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (1, 2)),
        Field("producer_epoch", "int16", (1, 2)),
        Field("transaction_result", "bool", (1, 2)),
        Field("topics", WritableTxnMarkerTopic, (1, 2), array=True),
        Field("coordinator_epoch", "int32", (1, 2)),
        Field("transaction_version", "int8", (2, 2), ignorable=True),
    )

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    """Versions 1 to 2, API key 27."""

    API_KEY: ClassVar[int] = 27
    NAME: ClassVar[str] = "WriteTxnMarkersRequest"
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarker, (1, 2), array=True),
    )

    markers: list[WritableTxnMarker] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[WriteTxnMarkersResponse]:
        """Return WriteTxnMarkersResponse."""
        return WriteTxnMarkersResponse
