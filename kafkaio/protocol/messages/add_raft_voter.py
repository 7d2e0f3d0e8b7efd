"""AddRaftVoterRequest and AddRaftVoterResponse (API key 80), versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "AddRaftVoterRequest",
    "AddRaftVoterResponse",
    "Listener",
]


@dataclass(slots=True, kw_only=True)
class AddRaftVoterResponse(Response):
    """Versions 0 to 1, API key 80."""

    API_KEY: ClassVar[int] = 80
    NAME: ClassVar[str] = "AddRaftVoterResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1), ignorable=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class Listener(Struct):
    """Part of AddRaftVoterRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class AddRaftVoterRequest(Request[AddRaftVoterResponse]):
    """Versions 0 to 1, API key 80."""

    API_KEY: ClassVar[int] = 80
    NAME: ClassVar[str] = "AddRaftVoterRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1)),
        Field("timeout_ms", "int32", (0, 1)),
        Field("voter_id", "int32", (0, 1)),
        Field("voter_directory_id", "uuid", (0, 1)),
        Field("listeners", Listener, (0, 1), array=True),
        Field("ack_when_committed", "bool", (1, 1), default=True),
    )

    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    ack_when_committed: bool = True

    @classmethod
    def response_type(cls) -> type[AddRaftVoterResponse]:
        """Return AddRaftVoterResponse."""
        return AddRaftVoterResponse
