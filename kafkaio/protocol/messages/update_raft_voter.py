"""UpdateRaftVoterRequest and UpdateRaftVoterResponse (API key 82), versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Field, Request, Response, Struct

__all__ = [
    "CurrentLeader",
    "KRaftVersionFeature",
    "Listener",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
]


@dataclass(slots=True, kw_only=True)
class CurrentLeader(Struct):
    """Part of UpdateRaftVoterResponse."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (0, 0), default=-1),
        Field("leader_epoch", "int32", (0, 0), default=-1),
        Field("host", "string", (0, 0)),
        Field("port", "int32", (0, 0)),
    )

    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class UpdateRaftVoterResponse(Response):
    """Versions 0 to 0, API key 82."""

    API_KEY: ClassVar[int] = 82
    NAME: ClassVar[str] = "UpdateRaftVoterResponse"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("current_leader", CurrentLeader, (0, 0), tag=0, tagged=(0, 0)),
    )

    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = field(default_factory=CurrentLeader)


@dataclass(slots=True, kw_only=True)
class Listener(Struct):
    """Part of UpdateRaftVoterRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
    )

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True)
class KRaftVersionFeature(Struct):
    """Part of UpdateRaftVoterRequest."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )

    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(slots=True, kw_only=True)
class UpdateRaftVoterRequest(Request[UpdateRaftVoterResponse]):
    """Versions 0 to 0, API key 82."""

    API_KEY: ClassVar[int] = 82
    NAME: ClassVar[str] = "UpdateRaftVoterRequest"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 0), nullable=(0, 0)),
        Field("current_leader_epoch", "int32", (0, 0)),
        Field("voter_id", "int32", (0, 0)),
        Field("voter_directory_id", "uuid", (0, 0)),
        Field("listeners", Listener, (0, 0), array=True),
        Field("kraft_version_feature", KRaftVersionFeature, (0, 0)),
    )

    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(
        default_factory=KRaftVersionFeature
    )

    @classmethod
    def response_type(cls) -> type[UpdateRaftVoterResponse]:
        """Return UpdateRaftVoterResponse."""
        return UpdateRaftVoterResponse
