"""ConsumerProtocolSubscription, versions 0 to 3."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from kafkaio._dataclass import dataclass
from kafkaio.protocol._message import Data, Field, Struct

__all__ = [
    "ConsumerProtocolSubscription",
    "TopicPartition",
]


@dataclass(slots=True, kw_only=True)
class TopicPartition(Struct):
    """Part of ConsumerProtocolSubscription."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (1, 3)),
        Field("partitions", "int32", (1, 3), array=True),
    )

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolSubscription(Data):
    """Versions 0 to 3."""

    NAME: ClassVar[str] = "ConsumerProtocolSubscription"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    LAST_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", (0, 3), array=True),
        Field("user_data", "bytes", (0, 3), nullable=(0, 3), default=None),
        Field("owned_partitions", TopicPartition, (1, 3), array=True, ignorable=True),
        Field("generation_id", "int32", (2, 3), default=-1, ignorable=True),
        Field(
            "rack_id", "string", (3, 3), nullable=(3, 3), default=None, ignorable=True
        ),
    )

    topics: list[str] = field(default_factory=list)
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)
    generation_id: int = -1
    rack_id: str | None = None
