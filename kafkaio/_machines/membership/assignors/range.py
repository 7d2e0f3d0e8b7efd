"""Range: each topic's partitions in runs; the first members get the longer ones.

Partition n of every topic goes to the same member if the members subscribe to the same
topics and these have the same number of partitions, so joins of topics stay local. If
members tell their racks, a partition goes to one with a replica in its rack, as long as
each member gets as many partitions as it would without racks (KIP-881).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.types import TopicPartition


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
        self, layout: Layout, members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member, topic by topic."""
        order = sorted(
            members, key=lambda member: member_order(member, members[member])
        )
        topics = list[_Topic]()
        for name in sorted(layout.counts):
            racks = {m: members[m].rack for m in order if name in members[m].topics}
            if racks and layout.counts[name]:
                topics.append(_Topic(name, layout, racks))
        if any(topic.has_far_partitions() for topic in topics):
            _deal_near(topics)
        for topic in topics:
            topic.deal()
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in members}
        for topic in topics:
            for member, numbers in topic.given.items():
                assignment[member] += [
                    TopicPartition(topic.name, n) for n in sorted(numbers)
                ]
        return assignment


class _Topic:
    """One topic's partitions while they are being assigned."""

    def __init__(
        self, name: str, layout: Layout, racks: Mapping[str, str | None]
    ) -> None:
        self.name = name
        self.count = layout.counts[name]
        self.racks = racks
        self.given: dict[str, list[int]] = {member: [] for member in racks}
        self._layout = layout
        # The partitions without an owner, in order.
        self._free = dict.fromkeys(range(self.count))
        # Each member gets the quota, and so many members get one more.
        self._quota, self._longer = divmod(self.count, len(racks))

    def has_far_partitions(self) -> bool:
        """Whether racks matter: not every partition has a replica in each of them."""
        racks = [
            self._layout.racks.get(TopicPartition(self.name, n), frozenset())
            for n in range(self.count)
        ]
        everywhere = frozenset[str]().union(*racks)
        if everywhere.isdisjoint(rack for rack in self.racks.values() if rack):
            return False
        return any(places != everywhere for places in racks)

    def is_near(self, member: str, number: int) -> bool:
        tp = TopicPartition(self.name, number)
        return self._layout.is_near(tp, self.racks[member])

    def capacity(self, member: str) -> int:
        return max(0, self._quota + (self._longer > 0) - len(self.given[member]))

    def give(self, member: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._free[number]
            self.given[member].append(number)
            self._longer -= len(self.given[member]) == self._quota + 1

    def deal(self, *, only_near: bool = False) -> None:
        for member in self.racks:
            fitting = (
                n for n in self._free if not only_near or self.is_near(member, n)
            )
            # A list: `give` removes from `_free`, which the generator reads.
            self.give(member, list(islice(fitting, self.capacity(member))))


def _deal_near(topics: Iterable[_Topic]) -> None:
    groups: dict[tuple[object, ...], list[_Topic]] = {}
    for topic in topics:
        alike = (topic.count, *topic.racks.items())
        groups.setdefault(alike, []).append(topic)
    for group in groups.values():
        if len(group) > 1:
            _deal_together(group)
        elif group[0].has_far_partitions():
            group[0].deal(only_near=True)


def _deal_together(topics: list[_Topic]) -> None:
    # Partition n of all of them must land on one member to keep joins local.
    first = topics[0]
    for number in range(first.count):
        for member in first.racks:
            if first.capacity(member) and all(
                t.is_near(member, number) for t in topics
            ):
                for topic in topics:
                    topic.give(member, [number])
                break
