"""LeaderChangeMessage, versions 0 to 1."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import ZERO_UUID, Data, Field, Struct

__all__ = [
    "LeaderChangeMessage",
    "Voter",
]


@dataclass(slots=True, kw_only=True)
class Voter(Struct):
    """Part of LeaderChangeMessage."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", (0, 1)),
        Field("voter_directory_id", "uuid", (1, 1)),
    )

    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID


@dataclass(slots=True, kw_only=True)
class LeaderChangeMessage(Data):
    """Versions 0 to 1."""

    NAME: ClassVar[str] = "LeaderChangeMessage"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("voters", Voter, (0, 1), array=True),
        Field("granting_voters", Voter, (0, 1), array=True),
    )

    version: int = 0
    leader_id: int = 0
    voters: list[Voter] = field(default_factory=list)
    granting_voters: list[Voter] = field(default_factory=list)
