"""Writes groups to the offsets topic and reads them again.

A journal remembers what it wrote last for each group, and writes only the difference:
new and changed records, and tombstones for keys that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups import kip848_records, share_records
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import ClassicGroupState
from kafkaio.testing._groups.cluster_port import (
    ClusterPort,
    KeyValue,
    Stored,
    TransactionEnd,
)
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_records import Kind
from kafkaio.testing._groups.offsets import Committed, Offsets, Place
from kafkaio.testing._groups.records import (
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
from kafkaio.testing._groups.share import (
    NoSharePartitions,
    ShareGroup,
    SharePartitionsPort,
)
from kafkaio.testing._groups.share_records import ShareKind

Group = ClassicGroup | Kip848Group | ShareGroup

#: The values written last, by key. For a classic group, it is the object itself and its
#: number of changes: another object under the same name is another group.
_Written: TypeAlias = Mapping[bytes, object]

#: The order of tombstones: the assignment of a member is deleted before the member.
_LAST_FIRST: Final[tuple[int, ...]] = (
    Kind.CURRENT,
    Kind.TARGET,
    Kind.TARGET_EPOCH,
    Kind.MEMBER,
    Kind.PATTERN,
    Kind.GROUP,
    ShareKind.CURRENT,
    ShareKind.TARGET,
    ShareKind.TARGET_EPOCH,
    ShareKind.MEMBER,
    ShareKind.GROUP,
)


class Journal:
    """Writes the changes of groups, and reads all groups of a shard.

    Args:
        cluster: has the offsets topic.
        wall_ms: returns milliseconds since the Unix epoch.
        shares: the share partitions, for share groups that are read.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        wall_ms: Callable[[], int],
        shares: SharePartitionsPort | None = None,
    ) -> None:
        self._cluster = cluster
        self._shares: SharePartitionsPort = shares or NoSharePartitions()
        self._wall_ms = wall_ms
        self._written: dict[str, _Written] = {}

    def save(self, group: Group) -> None:
        """Write what changed; a classic group only while it is stable or empty."""
        if isinstance(group, ShareGroup):
            self._save_image(group.id, share_records.image_of(group))
        elif isinstance(group, Kip848Group):
            self._save_image(group.id, kip848_records.image_of(group))
        # A rebalance in progress is not written: the next coordinator could not
        # continue it, and its members join again.
        elif group.changes and group.state in {
            ClassicGroupState.STABLE,
            ClassicGroupState.EMPTY,
        }:
            key = group_key(group.id)
            mark: _Written = {key: (group, group.changes)}
            # Each request to the group leads here; most change nothing.
            if self._written.get(group.id) != mark:
                value = group_value(image_of(group, self._wall_ms()))
                self._replace(group.id, mark, [(key, value)])

    def _save_image(self, group_id: str, image: kip848_records.Image) -> None:
        before = self._written.get(group_id, {})
        if image != before:
            now_ms = self._wall_ms()
            changed: list[KeyValue] = [
                (key, kip848_records.value_of(value, now_ms))
                for key, value in image.items()
                if before.get(key) != value
            ]
            self._replace(group_id, image, changed)

    def remove(self, group_id: str) -> None:
        """Delete all records of a group, except its committed offsets."""
        self._replace(group_id, {}, [])
        self._written.pop(group_id, None)

    def _replace(
        self, group_id: str, written: _Written, changed: list[KeyValue]
    ) -> None:
        # Tombstones, which come before the new values.
        gone = [key for key in self._written.get(group_id, {}) if key not in written]
        gone.sort(key=_rank)
        self._written[group_id] = written
        self._write(group_id, [*((key, None) for key in gone), *changed])

    def commit(
        self,
        group_id: str,
        positions: Mapping[Place, Committed | None],
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Write committed offsets, of which None deletes one.

        Args:
            group_id: the group.
            positions: the offsets.
            producer: producer id and epoch, if they are part of a transaction.

        Returns:
            The offset of the first record; -1 if there is none.
        """
        return self._write(
            group_id,
            [
                (offset_key(group_id, place), offset_value(one) if one else None)
                for place, one in positions.items()
            ],
            producer,
        )

    def _write(
        self,
        group_id: str,
        records: list[KeyValue],
        producer: tuple[int, int] | None = None,
    ) -> int:
        if not records:
            return -1
        shard = self._cluster.shard_of(group_id)
        return self._cluster.write(shard, records, self._wall_ms(), producer)

    def read(
        self, shard: int, config: GroupConfig, now: float
    ) -> tuple[list[Group], dict[str, Offsets]]:
        """Return the groups of a shard, and the committed offsets by group.

        A group of which only offsets were written is a classic one.
        """
        records: dict[str, dict[bytes, bytes]] = {}
        offsets: dict[str, Offsets] = {}
        for stored in self._cluster.read(shard):
            if isinstance(stored, TransactionEnd):
                # A marker has no key: it ends the transaction for every group of the
                # shard.
                for positions in offsets.values():
                    positions.end_transaction(
                        stored.producer_id, commit=stored.is_commit
                    )
                continue
            found = read_key(stored.key)
            if found is None:
                continue
            group_id, place = found
            key, value = stored.key, stored.value
            if place is not None:
                positions = offsets.setdefault(group_id, Offsets())
                _apply(positions, place, stored)
            elif value is not None:
                records.setdefault(group_id, {})[key] = value
            else:
                records.get(group_id, {}).pop(key, None)
        # Without a committed offset yet, such a group exists all the same.
        pending = {name for name, of in offsets.items() if of.has_pending}
        known = {name for name, of in (records | offsets).items() if len(of)}
        known |= pending
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
        if part_key(ShareKind.GROUP, group_id) in records:
            shared = ShareGroup(group_id, config, self._cluster, self._shares)
            share_records.restore(shared, records, now)
            self._written[group_id] = share_records.image_of(shared)
            return shared
        if part_key(Kind.GROUP, group_id) in records:
            group = Kip848Group(group_id, config, self._cluster)
            kip848_records.restore(group, records, now, now_ms)
            # Values that were read count as written, or the first change would write
            # the whole group again.
            self._written[group_id] = kip848_records.image_of(group)
            return group
        classic = ClassicGroup(group_id, config, now_ms)
        key = group_key(group_id)
        if key in records:
            restore(classic, read_group(records[key]), now)
            self._written[group_id] = {key: (classic, classic.changes)}
        return classic


def _apply(positions: Offsets, place: Place, stored: Stored) -> None:
    value = stored.value
    if value is None:
        positions.drop(place)
        return
    committed = replace(read_offset(value), written=stored.offset)
    if stored.producer_id >= 0:
        positions.put_pending(stored.producer_id, place, committed)
    else:
        positions.put(place, committed)


def _rank(key: bytes) -> int:
    kind = int.from_bytes(key[:2])
    return _LAST_FIRST.index(kind) if kind in _LAST_FIRST else -1
