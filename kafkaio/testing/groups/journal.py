"""What of groups is written to the offsets topic, and how it is found again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kafkaio.testing.groups import kip848_records as consumer_records
from kafkaio.testing.groups.classic import ClassicGroup
from kafkaio.testing.groups.classic_member import State
from kafkaio.testing.groups.config import GroupConfig
from kafkaio.testing.groups.home import Home, KeyValue
from kafkaio.testing.groups.kip848 import ConsumerGroup
from kafkaio.testing.groups.kip848_records import Kind
from kafkaio.testing.groups.offsets import Committed, Offsets, Place
from kafkaio.testing.groups.records import (
    group_key,
    group_value,
    image_of,
    offset_key,
    offset_value,
    part_key,
    read_group,
    read_key,
    read_offset,
    restore,
)

__all__ = ["Group", "Journal"]

Group = ClassicGroup | ConsumerGroup

#: By key, what was written last: for a classic group, which it was and its changes.
_Written: TypeAlias = Mapping[bytes, object]

#: In this order records are taken back: what a member has before the member.
_LAST_FIRST = (
    Kind.CURRENT,
    Kind.TARGET,
    Kind.TARGET_EPOCH,
    Kind.MEMBER,
    Kind.PATTERN,
    Kind.GROUP,
)


class Journal:
    """Writes what changed of a group, and reads all that was written.

    Args:
        home: where the offsets topic is.
        wall_ms: milliseconds since the Unix epoch.
    """

    def __init__(self, home: Home, wall_ms: Callable[[], int]) -> None:
        self._home = home
        self._wall_ms = wall_ms
        self._written: dict[str, _Written] = {}

    def save(self, group: Group) -> None:
        """Write what is new; of a classic group only when it has come to rest."""
        if isinstance(group, ConsumerGroup):
            self._save_consumer(group)
        elif group.changes and group.state in {State.STABLE, State.EMPTY}:
            key = group_key(group.id)
            mark: _Written = {key: (group, group.changes)}
            if self._written.get(group.id) != mark:
                value = group_value(image_of(group, self._wall_ms()))
                self._replace(group.id, mark, [(key, value)])

    def _save_consumer(self, group: ConsumerGroup) -> None:
        before = self._written.get(group.id, {})
        image = consumer_records.image_of(group)
        if image != before:
            now_ms = self._wall_ms()
            changed: list[KeyValue] = [
                (key, consumer_records.value_of(value, now_ms))
                for key, value in image.items()
                if before.get(key) != value
            ]
            self._replace(group.id, image, changed)

    def remove(self, group_id: str) -> None:
        """Take everything back but what the group has committed."""
        self._replace(group_id, {}, [])
        del self._written[group_id]

    def _replace(
        self, group_id: str, written: _Written, changed: list[KeyValue]
    ) -> None:
        gone = [key for key in self._written.get(group_id, {}) if key not in written]
        gone.sort(key=_rank)
        self._written[group_id] = written
        self._write(group_id, [*((key, None) for key in gone), *changed])

    def commit(
        self, group_id: str, positions: Mapping[Place, Committed | None]
    ) -> None:
        """Write positions, None for one that is forgotten."""
        self._write(
            group_id,
            [
                (offset_key(group_id, place), offset_value(one) if one else None)
                for place, one in positions.items()
            ],
        )

    def _write(self, group_id: str, records: list[KeyValue]) -> None:
        if records:
            shard = self._home.shard_of(group_id)
            self._home.write(shard, records, self._wall_ms())

    def read(
        self, shard: int, config: GroupConfig, now: float
    ) -> tuple[list[Group], dict[str, Offsets]]:
        """Return the groups of a shard and what they have committed.

        A group that is only known by its positions is a classic one.
        """
        records: dict[str, dict[bytes, bytes]] = {}
        offsets: dict[str, Offsets] = {}
        for key, value in self._home.read(shard):
            found = read_key(key)
            if found is None:
                continue
            group_id, place = found
            if place is not None:
                positions = offsets.setdefault(group_id, Offsets())
                positions.drop(place)
                if value is not None:
                    positions.put(place, read_offset(value))
            elif value is not None:
                records.setdefault(group_id, {})[key] = value
            else:
                records.get(group_id, {}).pop(key, None)
        known = {name for name, of in (records | offsets).items() if len(of)}
        groups = [
            self._restored(group_id, records.get(group_id, {}), config, now)
            for group_id in sorted(known)
        ]
        return groups, offsets

    def _restored(
        self,
        group_id: str,
        records: Mapping[bytes, bytes],
        config: GroupConfig,
        now: float,
    ) -> Group:
        now_ms = self._wall_ms()
        if part_key(Kind.GROUP, group_id) in records:
            group = ConsumerGroup(group_id, config, self._home)
            consumer_records.restore(group, records, now, now_ms)
            self._written[group_id] = consumer_records.image_of(group)
            return group
        classic = ClassicGroup(group_id, config, now_ms)
        key = group_key(group_id)
        if key in records:
            restore(classic, read_group(records[key]), now)
            self._written[group_id] = {key: (classic, classic.changes)}
        return classic


def _rank(key: bytes) -> int:
    kind = int.from_bytes(key[:2])
    return _LAST_FIRST.index(Kind(kind)) if kind in _LAST_FIRST else -1
