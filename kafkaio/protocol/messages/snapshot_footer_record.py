"""SnapshotFooterRecord, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "SnapshotFooterRecord",
]


@dataclass(slots=True, kw_only=True)
class SnapshotFooterRecord(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "SnapshotFooterRecord"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("version", "int16", (0, 0)),)

    version: int = 0
