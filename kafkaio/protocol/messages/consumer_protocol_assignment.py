"""ConsumerProtocolAssignment, versions 0 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field, Struct

__all__ = [
    "ConsumerProtocolAssignment",
    "TopicPartition",
]


@dataclass(slots=True, kw_only=True)
class TopicPartition(Struct):
    """Part of ConsumerProtocolAssignment."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 3)),
        Field("partitions", "int32", (0, 3), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolAssignment(Data):
    """Versions 0 to 3."""

    NAME: ClassVar[str] = "ConsumerProtocolAssignment"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("assigned_partitions", TopicPartition, (0, 3), array=True),
        Field("user_data", "bytes", (0, 3), nullable=(0, 3), default=None),
    )

    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None
