"""VotersRecord, versions 0 to 0."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Data, Field, Struct

__all__ = [
    "Endpoint",
    "KRaftVersionFeature",
    "Voter",
    "VotersRecord",
]


@dataclass(slots=True, kw_only=True)
class Endpoint(Struct):
    """Part of VotersRecord."""

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
    """Part of VotersRecord."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )

    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(slots=True, kw_only=True)
class Voter(Struct):
    """Part of VotersRecord."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", (0, 0)),
        Field("voter_directory_id", "uuid", (0, 0)),
        Field("endpoints", Endpoint, (0, 0), array=True),
        Field("kraft_version_feature", KRaftVersionFeature, (0, 0)),
    )

    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID
    endpoints: list[Endpoint] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(
        default_factory=KRaftVersionFeature
    )


@dataclass(slots=True, kw_only=True)
class VotersRecord(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "VotersRecord"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", (0, 0)),
        Field("voters", Voter, (0, 0), array=True),
    )

    version: int = 0
    voters: list[Voter] = field(default_factory=list)
