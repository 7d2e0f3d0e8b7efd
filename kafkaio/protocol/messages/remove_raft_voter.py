"""RemoveRaftVoterRequest and RemoveRaftVoterResponse (API key 81), versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response

__all__ = [
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
]


@dataclass(slots=True, kw_only=True)
class RemoveRaftVoterResponse(Response):
    """Versions 0 to 0, API key 81."""

    API_KEY: ClassVar[int] = 81
    NAME: ClassVar[str] = "RemoveRaftVoterResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0), ignorable=True),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(slots=True, kw_only=True)
class RemoveRaftVoterRequest(Request[RemoveRaftVoterResponse]):
    """Versions 0 to 0, API key 81."""

    API_KEY: ClassVar[int] = 81
    NAME: ClassVar[str] = "RemoveRaftVoterRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 0), nullable=(0, 0)),
        Field("voter_id", "int32", (0, 0)),
        Field("voter_directory_id", "uuid", (0, 0)),
    )

    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID

    @classmethod
    def response_type(cls) -> type[RemoveRaftVoterResponse]:
        """Return RemoveRaftVoterResponse."""
        return RemoveRaftVoterResponse
