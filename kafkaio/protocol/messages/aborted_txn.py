"""AbortedTxn, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "AbortedTxn",
]


@dataclass(slots=True, kw_only=True)
class AbortedTxn(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "AbortedTxn"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (0, 0)),
        Field("first_offset", "int64", (0, 0)),
        Field("last_offset", "int64", (0, 0)),
        Field("last_stable_offset", "int64", (0, 0)),
    )

    producer_id: int = 0
    first_offset: int = 0
    last_offset: int = 0
    last_stable_offset: int = 0
