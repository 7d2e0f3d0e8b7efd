"""ControlRecordTypeSchema, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "ControlRecordTypeSchema",
]


@dataclass(slots=True, kw_only=True)
class ControlRecordTypeSchema(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "ControlRecordTypeSchema"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("type", "int16", (0, 0)),)

    type: int = 0
