"""Round robin: all partitions of all topics are assigned one by one."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._machines.membership.assignors.range import member_order
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition


class RoundRobinAssignor:
    """The assignor that Kafka calls ``roundrobin``."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, subscription: Subscription) -> bytes | None:
        """Nothing."""
        return None

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member; non-subscribers of a topic are skipped."""
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = sorted(
            members, key=lambda member: member_order(member, members[member])
        )
        turn = 0
        for topic in sorted(layout.counts):
            if not any(topic in members[member].topics for member in order):
                continue
            for number in range(layout.counts[topic]):
                while topic not in members[order[turn % len(order)]].topics:
                    turn += 1
                assignment[order[turn % len(order)]].append(
                    TopicPartition(topic, number)
                )
                turn += 1
        return assignment
