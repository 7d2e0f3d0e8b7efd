"""DescribeClusterRequest and DescribeClusterResponse (API key 60), versions 0 to 2."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "DescribeClusterBroker",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
]


@dataclass(slots=True, kw_only=True)
class DescribeClusterBroker(Struct):
    """Part of DescribeClusterResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 2)),
        Field("host", "string", (0, 2)),
        Field("port", "int32", (0, 2)),
        Field("rack", "string", (0, 2), nullable=(0, 2), default=None),
        Field("is_fenced", "bool", (2, 2)),
    )

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeClusterResponse(Response):
    """Versions 0 to 2, API key 60."""

    API_KEY: ClassVar[int] = 60
    NAME: ClassVar[str] = "DescribeClusterResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2), default=None),
        Field("endpoint_type", "int8", (1, 2), default=1),
        Field("cluster_id", "string", (0, 2)),
        Field("controller_id", "int32", (0, 2), default=-1),
        Field("brokers", DescribeClusterBroker, (0, 2), array=True),
        Field("cluster_authorized_operations", "int32", (0, 2), default=-2147483648),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True)
class DescribeClusterRequest(Request[DescribeClusterResponse]):
    """Versions 0 to 2, API key 60."""

    API_KEY: ClassVar[int] = 60
    NAME: ClassVar[str] = "DescribeClusterRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    LAST_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("include_cluster_authorized_operations", "bool", (0, 2)),
        Field("endpoint_type", "int8", (1, 2), default=1),
        Field("include_fenced_brokers", "bool", (2, 2)),
    )

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False

    @classmethod
    def response_type(cls) -> type[DescribeClusterResponse]:
        """Return DescribeClusterResponse."""
        return DescribeClusterResponse
