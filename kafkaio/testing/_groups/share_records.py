"""The records of a share group in ``__consumer_offsets``, in Kafka's format.

Which share partitions a group has is not among them, as it is in Kafka: the states of
the share partitions say so (see ``kafkaio.testing._share.states``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeAlias

from kafkaio.protocol._codec import decode
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.kip848_records import Image
from kafkaio.testing._groups.record_formats import (
    ShareCurrentValue,
    ShareGroupValue,
    ShareMemberValue,
    TargetEpochValue,
    TargetValue,
    TopicPartitions,
    Value,
)
from kafkaio.testing._groups.records import key_parts, part_key
from kafkaio.testing._groups.share import ShareGroup, ShareMember

_Slots: TypeAlias = frozenset[Slot]
_VERSION_BYTES: Final = 2


class ShareKind(IntEnum):
    """The kinds of records, by the versions of their keys."""

    MEMBER = 10
    GROUP = 11
    TARGET_EPOCH = 12
    TARGET = 13
    CURRENT = 14


_VALUES: Final[Mapping[ShareKind, type[Value]]] = {
    ShareKind.MEMBER: ShareMemberValue,
    ShareKind.GROUP: ShareGroupValue,
    ShareKind.TARGET_EPOCH: TargetEpochValue,
    ShareKind.TARGET: TargetValue,
    ShareKind.CURRENT: ShareCurrentValue,
}


def image_of(group: ShareGroup) -> Image:
    """Return the records of a group, in the order in which to write them."""
    members = group.members.values()
    image: Image = {}
    for one in members:
        image[part_key(ShareKind.MEMBER, group.id, one.id)] = ShareMemberValue(
            rack_id=one.rack,
            client_id=one.client_id,
            client_host=one.client_host,
            subscribed_topic_names=sorted(one.names),
        )
    image[part_key(ShareKind.GROUP, group.id)] = ShareGroupValue(
        epoch=group.epoch, metadata_hash=group.fingerprint
    )
    for one in members:
        target = group.target.get(one.id, frozenset())
        image[part_key(ShareKind.TARGET, group.id, one.id)] = TargetValue(
            topic_partitions=_topics(target)
        )
    image[part_key(ShareKind.TARGET_EPOCH, group.id)] = TargetEpochValue(
        assignment_epoch=group.target_epoch
    )
    for one in members:
        image[part_key(ShareKind.CURRENT, group.id, one.id)] = ShareCurrentValue(
            member_epoch=one.epoch,
            previous_member_epoch=one.previous_epoch,
            assigned_partitions=_topics(one.assigned),
        )
    return image


def _topics(slots: _Slots) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic, partitions=numbers)
        for topic, numbers in by_topic(slots).items()
    ]


def _slots(topics: list[TopicPartitions]) -> _Slots:
    return frozenset((one.topic_id, n) for one in topics for n in one.partitions)


def restore(group: ShareGroup, records: Mapping[bytes, bytes], now: float) -> None:
    """Restore a group from its records; all sessions are renewed.

    Args:
        group: a new group.
        records: the newest value of each key.
        now: the time, in seconds.
    """
    found: dict[ShareKind, dict[str, Value]] = {kind: {} for kind in ShareKind}
    for key, data in records.items():
        number, _, part = key_parts(key)
        if number in _VALUES:
            kind = ShareKind(number)
            found[kind][part] = decode(_VALUES[kind], 0, data[_VERSION_BYTES:])
    for member_id, value in found[ShareKind.MEMBER].items():
        assert isinstance(value, ShareMemberValue)
        group.members[member_id] = ShareMember(
            id=member_id,
            rack=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            names=frozenset(value.subscribed_topic_names),
        )
    for member_id, current in found[ShareKind.CURRENT].items():
        assert isinstance(current, ShareCurrentValue)
        member = group.members[member_id]
        member.epoch = current.member_epoch
        member.previous_epoch = current.previous_member_epoch
        member.assigned = _slots(current.assigned_partitions)
    for member_id, target in found[ShareKind.TARGET].items():
        assert isinstance(target, TargetValue)
        group.target[member_id] = _slots(target.topic_partitions)
    for target_epoch in found[ShareKind.TARGET_EPOCH].values():
        assert isinstance(target_epoch, TargetEpochValue)
        group.target_epoch = target_epoch.assignment_epoch
    for metadata in found[ShareKind.GROUP].values():
        assert isinstance(metadata, ShareGroupValue)
        group.epoch = metadata.epoch
        # Last: the group compares the topics with those of its members.
        group.resume(metadata.metadata_hash, now)
