"""The records of a KIP-848 group in ``__consumer_offsets``, in Kafka's format.

There is a record for the group, for the epoch of its target and for each pattern, and
three for each member: what it subscribes to, its target and its current assignment.
The version of a record's key is its kind.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, TypeAlias

from kafkaio.protocol._codec import decode, encode
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.describe import by_topic
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_member import (
    ClassicMetadata,
    Kip848Member,
    MemberState,
)
from kafkaio.testing._groups.record_formats import (
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentAssignmentValue,
    GroupValue,
    MemberValue,
    PatternValue,
    TargetEpochValue,
    TargetValue,
    TopicPartitions,
    TopicPartitionsWithEpochs,
    Value,
)
from kafkaio.testing._groups.records import key_parts, part_key


class Kind(IntEnum):
    """The kinds of records, by the versions of their keys."""

    GROUP = 3
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


#: The records of a group: their values by their keys.
Image: TypeAlias = dict[bytes, Value]

#: In the order in which Kafka applies them: a member before its assignment.
_VALUES: Final[Mapping[Kind, type[Value]]] = {
    Kind.MEMBER: MemberValue,
    Kind.PATTERN: PatternValue,
    Kind.GROUP: GroupValue,
    Kind.TARGET: TargetValue,
    Kind.TARGET_EPOCH: TargetEpochValue,
    Kind.CURRENT: CurrentAssignmentValue,
}
_STATES: Final = (MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED)
_VERSION: Final = struct.pack(">h", 0)


def image_of(group: Kip848Group) -> Image:
    """Return the records of a group, in the order in which to write them.

    Timestamps are left out, so that two images can be compared; `value_of` adds them.
    """
    group_id, members = group.id, group.members.values()
    image: Image = {}
    for one in members:
        image[part_key(Kind.MEMBER, group_id, one.id)] = _member_value(one)
    for pattern in sorted({one.regex for one in members if one.regex}):
        names = group.subscriptions.matches.get(pattern)
        # A pattern that was not matched yet has no record.
        if names is not None:
            key = part_key(Kind.PATTERN, group_id, pattern)
            image[key] = PatternValue(topics=sorted(names))
    image[part_key(Kind.GROUP, group_id)] = GroupValue(
        epoch=group.epoch, metadata_hash=group.subscriptions.fingerprint
    )
    for one in members:
        target = by_topic(group.target.get(one.id, ()))
        image[part_key(Kind.TARGET, group_id, one.id)] = TargetValue(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=numbers)
                for topic, numbers in target.items()
            ]
        )
    image[part_key(Kind.TARGET_EPOCH, group_id)] = TargetEpochValue(
        assignment_epoch=group.target_epoch
    )
    for one in members:
        image[part_key(Kind.CURRENT, group_id, one.id)] = CurrentAssignmentValue(
            member_epoch=one.epoch,
            previous_member_epoch=one.previous_epoch,
            state=_STATES.index(one.state),
            assigned_partitions=_with_epochs(one.assigned),
            partitions_pending_revocation=_with_epochs(one.revoking),
        )
    return image


def _member_value(member: Kip848Member) -> MemberValue:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=round(member.classic.session_timeout * 1000),
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex or "",
        rebalance_timeout_ms=round(member.rebalance_timeout * 1000),
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )


def _with_epochs(slots: Mapping[Slot, int]) -> list[TopicPartitionsWithEpochs]:
    return [
        TopicPartitionsWithEpochs(
            topic_id=topic,
            partitions=numbers,
            assignment_epochs=[slots[topic, number] for number in numbers],
        )
        for topic, numbers in by_topic(slots).items()
    ]


def value_of(value: Value, now_ms: int) -> bytes:
    """Return the bytes of a value, with the time as its timestamp."""
    if isinstance(value, TargetEpochValue):
        value = replace(value, assignment_timestamp=now_ms)
    elif isinstance(value, PatternValue):
        value = replace(value, timestamp=now_ms)
    return _VERSION + encode(value, 0)


def restore(
    group: Kip848Group, records: Mapping[bytes, bytes], now: float, now_ms: int
) -> None:
    """Restore a group from its records; all sessions are renewed.

    Args:
        group: a new group.
        records: the newest value of each key.
        now: the time, in seconds.
        now_ms: the wall clock, in milliseconds.
    """
    found: dict[Kind, dict[str, Value]] = {kind: {} for kind in Kind}
    for key, data in records.items():
        number, _, part = key_parts(key)
        if number in _VALUES:
            kind = Kind(number)
            # Newer versions of Kafka add tagged fields only, which are ignored.
            found[kind][part] = decode(_VALUES[kind], 0, data[len(_VERSION) :])
    for member_id, value in found[Kind.MEMBER].items():
        assert isinstance(value, MemberValue)
        group.add(_member(member_id, value))
    for member_id, current in found[Kind.CURRENT].items():
        assert isinstance(current, CurrentAssignmentValue)
        _restore_assignment(group.members[member_id], current)
    for member_id, target in found[Kind.TARGET].items():
        assert isinstance(target, TargetValue)
        group.target[member_id] = frozenset(
            (topic.topic_id, number)
            for topic in target.topic_partitions
            for number in topic.partitions
        )
    assigned_at = now
    for target_epoch in found[Kind.TARGET_EPOCH].values():
        assert isinstance(target_epoch, TargetEpochValue)
        group.target_epoch = target_epoch.assignment_epoch
        # On the monotonic clock of this process, which the log does not have.
        assigned_at -= (now_ms - target_epoch.assignment_timestamp) / 1000
    for pattern, match in found[Kind.PATTERN].items():
        assert isinstance(match, PatternValue)
        group.subscriptions.matches[pattern] = frozenset(match.topics)
    # Last: the group compares the topics with those of its members.
    for metadata in found[Kind.GROUP].values():
        assert isinstance(metadata, GroupValue)
        group.epoch = metadata.epoch
        group.resume(assigned_at, metadata.metadata_hash, now)


def _member(member_id: str, value: MemberValue) -> Kip848Member:
    classic = None
    if value.classic_member_metadata is not None:
        protocols = value.classic_member_metadata.supported_protocols
        classic = ClassicMetadata(
            value.classic_member_metadata.session_timeout_ms / 1000,
            tuple((one.name, one.metadata) for one in protocols),
        )
    return Kip848Member(
        id=member_id,
        instance_id=value.instance_id,
        rack=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout=value.rebalance_timeout_ms / 1000,
        names=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or None,
        assignor=value.server_assignor,
        classic=classic,
    )


def _restore_assignment(member: Kip848Member, current: CurrentAssignmentValue) -> None:
    member.epoch = current.member_epoch
    member.previous_epoch = current.previous_member_epoch
    member.state = _STATES[current.state]
    member.assigned = _slots(current.assigned_partitions, member.epoch)
    member.revoking = _slots(current.partitions_pending_revocation, member.epoch)


def _slots(topics: list[TopicPartitionsWithEpochs], epoch: int) -> dict[Slot, int]:
    """Return partitions with their epochs, which Kafka before 4.3 did not write."""
    return {
        (topic.topic_id, number): since
        for topic in topics
        for number, since in zip(
            topic.partitions,
            topic.assignment_epochs or [epoch] * len(topic.partitions),
            strict=True,
        )
    }
