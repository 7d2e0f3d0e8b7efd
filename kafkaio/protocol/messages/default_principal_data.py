"""DefaultPrincipalData, versions 0 to 0."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field

__all__ = [
    "DefaultPrincipalData",
]


@dataclass(slots=True, kw_only=True)
class DefaultPrincipalData(Data):
    """Versions 0 to 0."""

    NAME: ClassVar[str] = "DefaultPrincipalData"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("type", "string", (0, 0)),
        Field("name", "string", (0, 0)),
        Field("token_authenticated", "bool", (0, 0)),
    )

    type: str = ""
    name: str = ""
    token_authenticated: bool = False
