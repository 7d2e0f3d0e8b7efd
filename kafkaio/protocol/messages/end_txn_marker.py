"""EndTxnMarker, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "EndTxnMarker",
]


@dataclass(slots=True, kw_only=True)
class EndTxnMarker(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "EndTxnMarker"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("coordinator_epoch", "int32", (0, 0)),)

    coordinator_epoch: int = 0
