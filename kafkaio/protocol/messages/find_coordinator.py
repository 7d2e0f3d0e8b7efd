"""FindCoordinatorRequest and FindCoordinatorResponse (API key 10), versions 0 to 6."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Field, Request, Response, Struct

__all__ = [
    "Coordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
]


@dataclass(slots=True, kw_only=True)
class Coordinator(Struct):
    """Part of FindCoordinatorResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (4, 6)),
        Field("node_id", "int32", (4, 6)),
        Field("host", "string", (4, 6)),
        Field("port", "int32", (4, 6)),
        Field("error_code", "int16", (4, 6)),
        Field("error_message", "string", (4, 6), nullable=(4, 6), ignorable=True),
    )

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponse(Response):
    """Versions 0 to 6, API key 10."""

    API_KEY: ClassVar[int] = 10
    NAME: ClassVar[str] = "FindCoordinatorResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6), ignorable=True),
        Field("error_code", "int16", (0, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3), ignorable=True),
        Field("node_id", "int32", (0, 3)),
        Field("host", "string", (0, 3)),
        Field("port", "int32", (0, 3)),
        Field("coordinators", Coordinator, (4, 6), array=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    """Versions 0 to 6, API key 10."""

    API_KEY: ClassVar[int] = 10
    NAME: ClassVar[str] = "FindCoordinatorRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    LAST_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 3)),
        Field("key_type", "int8", (1, 6)),
        Field("coordinator_keys", "string", (4, 6), array=True),
    )

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = field(default_factory=list)

    @classmethod
    def response_type(cls) -> type[FindCoordinatorResponse]:
        """Return FindCoordinatorResponse."""
        return FindCoordinatorResponse
