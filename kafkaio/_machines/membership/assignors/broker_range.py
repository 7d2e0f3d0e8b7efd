"""Broker range: runs of partitions that the same broker leads.

As ``range``, but the partitions of each topic are ordered by their leaders first, so
that each member fetches from few brokers. Kafka's consumers on ZooKeeper did the same.
Partitions of equal number in different topics may go to different members; use
``range`` to join topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._machines.membership.assignors.range import member_order
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition


class BrokerRangeAssignor:
    """The assignor ``broker-range``, which other clients do not have.

    A new leader alone causes no rebalance, because leaders move with every restart of a
    broker. The assignment stays until something else makes the group rebalance, or
    ``Consumer.enforce_rebalance`` does.
    """

    name = "broker-range"
    cooperative = False

    def user_data(self, subscription: Subscription) -> bytes | None:
        """Nothing."""
        return None

    def assign(
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member, topic by topic."""
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = sorted(
            members, key=lambda member: member_order(member, members[member])
        )
        for topic in sorted(layout.counts):
            readers = [m for m in order if topic in members[m].topics]
            if not readers:
                continue
            # Partitions without a leader last: they cannot be fetched now.
            clustered = sorted(
                (TopicPartition(topic, n) for n in range(layout.counts[topic])),
                key=lambda tp: (layout.leaders.get(tp, float("inf")), tp),
            )
            quota, longer = divmod(len(clustered), len(readers))
            start = 0
            for place, member in enumerate(readers):
                end = start + quota + (place < longer)
                assignment[member] += sorted(clustered[start:end])
                start = end
        return assignment
