"""The assignor that divides the partitions of each topic in ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

__all__ = ["RangePartitionAssignor"]


class RangePartitionAssignor(AbstractPartitionAssignor):
    """Gives each member of a topic a range of its partitions.

    The first members, by their ids, get one more if it does not divide evenly. A
    consumer that is given this class uses ``range`` of kafkaio.
    """

    name = "range"
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
        for topic in sorted(topics):
            numbers = sorted(cluster.partitions_for_topic(topic) or ())
            readers = sorted(
                member for member, each in members.items() if topic in each.subscription
            )
            size, more = divmod(len(numbers), len(readers))
            start = 0
            for place, member in enumerate(readers):
                end = start + size + (place < more)
                found[member][topic] = numbers[start:end]
                start = end
        return {
            member: ConsumerProtocolMemberAssignment(
                cls.version, [*assigned.items()], b""
            )
            for member, assigned in found.items()
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription to topics."""
        return ConsumerProtocolMemberMetadata(cls.version, [*topics], b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Do nothing: a range does not depend on the one before."""
