"""Schemas of the records of ``__share_group_state``, which are Kafka's.

A record's key has the group, the topic's id and the partition's number; its version is
the kind of the record. A snapshot has the whole state of a share partition; an update,
which this broker reads and does not write, has the records whose state changed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar, Final
from uuid import UUID

from kafkaio.protocol._message import Data, Field, Range, Struct

_ALL: Range = (0, 0)
SNAPSHOT: Final = 0
UPDATE: Final = 1


@dataclass(slots=True, kw_only=True)
class StateBatch(Struct):
    """The state of a range of offsets."""

    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", _ALL),
        Field("last_offset", "int64", _ALL),
        Field("delivery_state", "int8", _ALL),
        Field("delivery_count", "int16", _ALL),
    )

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True)
class SnapshotValue(Data):
    """The whole state of a share partition."""

    NAME: ClassVar[str] = "ShareSnapshotValue"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32", _ALL),
        Field("state_epoch", "int32", _ALL),
        Field("leader_epoch", "int32", _ALL),
        Field("start_offset", "int64", _ALL),
        Field("create_timestamp", "int64", _ALL),
        Field("write_timestamp", "int64", _ALL),
        Field("state_batches", StateBatch, _ALL, array=True),
        Field("delivery_complete_count", "int32", _ALL, tag=0, tagged=_ALL),
    )

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)
    delivery_complete_count: int = 0


@dataclass(slots=True, kw_only=True)
class UpdateValue(Data):
    """What changed since the snapshot; a start of -1 for no change of it."""

    NAME: ClassVar[str] = "ShareUpdateValue"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32", _ALL),
        Field("leader_epoch", "int32", _ALL),
        Field("start_offset", "int64", _ALL),
        Field("state_batches", StateBatch, _ALL, array=True),
        Field("delivery_complete_count", "int32", _ALL, tag=0, tagged=_ALL),
    )

    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)
    delivery_complete_count: int = 0


def state_key(
    group: str, topic_id: UUID, partition: int, kind: int = SNAPSHOT
) -> bytes:
    """Return the key of a record."""
    name = group.encode()
    return b"".join(
        (
            struct.pack(">hh", kind, len(name)),
            name,
            topic_id.bytes,
            struct.pack(">i", partition),
        )
    )


def read_state_key(key: bytes) -> tuple[int, str, UUID, int]:
    """Return the kind, the group, the topic's id and the partition of a key."""
    kind, size = struct.unpack_from(">hh", key)
    end = 4 + size
    (partition,) = struct.unpack_from(">i", key, end + 16)
    return kind, key[4:end].decode(), UUID(bytes=key[end : end + 16]), partition
