"""Range: each topic's partitions in runs, the first members getting the longer ones.

Partition n of every topic lands on the same member while the members subscribe to the
same topics with the same number of partitions, so joins of topics stay local.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition

__all__ = ["RangeAssignor", "member_order"]


def member_order(member_id: str, subscription: Subscription) -> tuple[bool, str]:
    """Sort key of a member: static ones by their name first, then by member id."""
    name = subscription.group_instance_id
    return (True, member_id) if name is None else (False, name)


class RangeAssignor:
    """The assignor that Kafka calls ``range``."""

    name = "range"
    cooperative = False

    def user_data(self, subscription: Subscription) -> bytes | None:
        """Nothing."""
        return None

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """Everybody's share, topic by topic."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = sorted(
            members, key=lambda member: member_order(member, members[member])
        )
        for topic in sorted(counts):
            readers = [m for m in order if topic in members[m].topics]
            if not readers:
                continue
            quota, longer = divmod(counts[topic], len(readers))
            start = 0
            for place, member in enumerate(readers):
                end = start + quota + (place < longer)
                shares[member] += [TopicPartition(topic, n) for n in range(start, end)]
                start = end
        return shares
