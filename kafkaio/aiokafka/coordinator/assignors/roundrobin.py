"""The assignor that deals all partitions out in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle

from kafkaio import TopicPartition
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

__all__ = ["RoundRobinPartitionAssignor"]


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """Deals the partitions of all topics out to the members in turn.

    A member that does not subscribe to a topic is passed over. A consumer that is given
    this class, as by default, uses ``roundrobin`` of kafkaio.
    """

    name = "roundrobin"
    version = 0

    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the partitions of each member."""
        found: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        topics = {topic for each in members.values() for topic in each.subscription}
        turns = cycle(sorted(members))
        partitions = sorted(
            TopicPartition(topic, number)
            for topic in topics
            for number in cluster.partitions_for_topic(topic) or ()
        )
        for tp in partitions:
            # It ends: the topic is in the subscription of one of them.
            member = next(
                each for each in turns if tp.topic in members[each].subscription
            )
            found[member].setdefault(tp.topic, []).append(tp.partition)
        return {
            member: ConsumerProtocolMemberAssignment(
                cls.version, sorted(assigned.items()), b""
            )
            for member, assigned in found.items()
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription to topics."""
        return ConsumerProtocolMemberMetadata(cls.version, [*topics], b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Do nothing: a deal does not depend on the one before."""
