"""SnapshotHeaderRecord, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "SnapshotHeaderRecord",
]


@dataclass(slots=True, kw_only=True)
class SnapshotHeaderRecord(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "SnapshotHeaderRecord"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", (0, 0)),
        Field("last_contained_log_timestamp", "int64", (0, 0)),
    )

    version: int = 0
    last_contained_log_timestamp: int = 0
