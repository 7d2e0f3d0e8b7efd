"""A group of the consumer protocol as ``__consumer_offsets`` keeps it (KIP-848).

In Kafka's own format: a record for the group, one for each member, pattern and target,
and one for what each member has. The kind of a record is the version of its key.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, TypeAlias

from kafkaio.protocol.codec import decode, encode
from kafkaio.testing.groups.assignors import Slot
from kafkaio.testing.groups.describe import by_topic
from kafkaio.testing.groups.kip848 import ConsumerGroup
from kafkaio.testing.groups.kip848_member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from kafkaio.testing.groups.record_formats import (
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
from kafkaio.testing.groups.records import key_parts, part_key

__all__ = ["Image", "Kind", "image_of", "restore", "value_of"]


class Kind(IntEnum):
    """The kinds of records, by the versions of their keys."""

    GROUP = 3
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


#: What is to be kept of a group, by the keys of the records.
Image: TypeAlias = dict[bytes, Value]

#: In the order in which Kafka takes them in: a member before what it has.
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


def image_of(group: ConsumerGroup) -> Image:
    """Describe a group as its records shall, in the order to write them in.

    Times are left out: ``value_of`` puts them in.
    """
    group_id, members = group.id, group.members.values()
    image: Image = {}
    for one in members:
        image[part_key(Kind.MEMBER, group_id, one.id)] = _member_value(one)
    for pattern in sorted({one.regex for one in members if one.regex}):
        names = group.subscriptions.matches.get(pattern)
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


def _member_value(member: ConsumerMember) -> MemberValue:
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
    """Return the bytes to write for a part of an image that is new."""
    if isinstance(value, TargetEpochValue):
        value = replace(value, assignment_timestamp=now_ms)
    elif isinstance(value, PatternValue):
        value = replace(value, timestamp=now_ms)
    return _VERSION + encode(value, 0)


def restore(
    group: ConsumerGroup, records: Mapping[bytes, bytes], now: float, now_ms: int
) -> None:
    """Make a new group what its records tell; every session starts anew.

    Args:
        group: a group that nothing has happened to.
        records: by key, the newest of each.
        now: the time on the loop's clock.
        now_ms: the wall clock.
    """
    found: dict[Kind, dict[str, Value]] = {kind: {} for kind in Kind}
    for key, value in records.items():
        number, _, part = key_parts(key)
        if number in _VALUES:
            kind = Kind(number)
            # What newer versions of Kafka add is tagged, and left out.
            found[kind][part] = decode(_VALUES[kind], 0, value[len(_VERSION) :])
    for member_id, said in found[Kind.MEMBER].items():
        assert isinstance(said, MemberValue)
        group.enter(_member(member_id, said))
    for member_id, current in found[Kind.CURRENT].items():
        assert isinstance(current, CurrentAssignmentValue)
        _take_up(group.members[member_id], current)
    for member_id, target in found[Kind.TARGET].items():
        assert isinstance(target, TargetValue)
        group.target[member_id] = frozenset(
            (topic.topic_id, number)
            for topic in target.topic_partitions
            for number in topic.partitions
        )
    assigned_at = now
    for told in found[Kind.TARGET_EPOCH].values():
        assert isinstance(told, TargetEpochValue)
        group.target_epoch = told.assignment_epoch
        assigned_at -= (now_ms - told.assignment_timestamp) / 1000
    for pattern, match in found[Kind.PATTERN].items():
        assert isinstance(match, PatternValue)
        group.subscriptions.matches[pattern] = frozenset(match.topics)
    for is_ in found[Kind.GROUP].values():
        assert isinstance(is_, GroupValue)
        group.epoch = is_.epoch
        group.resume(assigned_at, is_.metadata_hash, now)


def _member(member_id: str, said: MemberValue) -> ConsumerMember:
    classic = None
    if said.classic_member_metadata is not None:
        protocols = said.classic_member_metadata.supported_protocols
        classic = ClassicSide(
            said.classic_member_metadata.session_timeout_ms / 1000,
            tuple((one.name, one.metadata) for one in protocols),
        )
    return ConsumerMember(
        id=member_id,
        instance_id=said.instance_id,
        rack=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        rebalance_timeout=said.rebalance_timeout_ms / 1000,
        names=frozenset(said.subscribed_topic_names),
        regex=said.subscribed_topic_regex or None,
        assignor=said.server_assignor,
        classic=classic,
    )


def _take_up(member: ConsumerMember, current: CurrentAssignmentValue) -> None:
    member.epoch = current.member_epoch
    member.previous_epoch = current.previous_member_epoch
    member.state = _STATES[current.state]
    member.assigned = _slots(current.assigned_partitions, member.epoch)
    member.revoking = _slots(current.partitions_pending_revocation, member.epoch)


def _slots(topics: list[TopicPartitionsWithEpochs], epoch: int) -> dict[Slot, int]:
    """Return partitions with their epochs, which Kafka before 4.3 did not tell."""
    return {
        (topic.topic_id, number): since
        for topic in topics
        for number, since in zip(
            topic.partitions,
            topic.assignment_epochs or [epoch] * len(topic.partitions),
            strict=True,
        )
    }
