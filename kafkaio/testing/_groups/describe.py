"""Descriptions of groups for answers: members, assignments, subscriptions."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from kafkaio.errors import ProtocolError
from kafkaio.protocol.messages.consumer_group_describe import (
    Assignment,
    Member,
    TopicPartitions,
)
from kafkaio.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
)
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import ClassicGroupState
from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.embedded_protocol import read_subscription
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_member import Kip848Member
from kafkaio.testing._groups.share import ShareGroup


def by_topic(slots: Iterable[Slot]) -> dict[UUID, list[int]]:
    """Return partition numbers by topic id, both sorted."""
    found: dict[UUID, list[int]] = {}
    for topic, partition in sorted(slots):
        found.setdefault(topic, []).append(partition)
    return found


def subscribed_topics(
    group: ClassicGroup | Kip848Group | ShareGroup,
) -> frozenset[str] | None:
    """Return the topics that members subscribe to; None if that cannot be parsed."""
    if isinstance(group, ShareGroup):
        return frozenset(group.topics)
    if isinstance(group, Kip848Group):
        return frozenset().union(*map(group.topics_of, group.members.values()))
    # Connect and Streams have metadata of their own.
    if group.members and group.protocol_type != "consumer":
        return None
    found: set[str] = set()
    for member in group.members.values():
        try:
            # Every protocol of a consumer has the same topics.
            subscription = read_subscription(member.protocols[0][1])
        except ProtocolError:
            return None
        found.update(subscription.topics)
    return frozenset(found)


def describe_classic_group(group: ClassicGroup) -> DescribedGroup:
    """Describe a classic group; its members' metadata only while it is stable."""
    # In a rebalance, as in Kafka, metadata and assignments are not shown.
    is_stable = group.state is ClassicGroupState.STABLE
    protocol = group.protocol if is_stable and group.protocol else ""
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol,
        members=[
            DescribedGroupMember(
                member_id=one.id,
                group_instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                member_metadata=one.metadata(protocol) if is_stable else b"",
                member_assignment=one.assignment,
            )
            for one in group.members.values()
        ],
    )


def describe_kip848_member(
    group: Kip848Group, member: Kip848Member, cluster: ClusterPort
) -> Member:
    """Describe a member of a KIP-848 group."""
    target = group.target.get(member.id, frozenset())
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex or "",
        assignment=_assignment([*member.assigned, *member.revoking], cluster),
        target_assignment=_assignment(target, cluster),
        member_type=int(member.classic is None),
    )


def _assignment(slots: Iterable[Slot], cluster: ClusterPort) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id,
                topic_name=cluster.topic_name(topic_id) or "",
                partitions=partitions,
            )
            for topic_id, partitions in by_topic(slots).items()
        ]
    )
