"""The partitions of a group's topics, for assignors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.types import TopicPartition


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of a group's topics, and where they are stored.

    Attributes:
        counts: number of partitions of every known topic.
        leaders: node id of the leader of each partition that has one.
        racks: the racks in which each partition has a replica, if the brokers tell
            theirs (KIP-881). The rack of a broker that is down is unknown.
    """

    counts: Mapping[str, int]
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    racks: Mapping[TopicPartition, frozenset[str]] = field(default_factory=dict)

    def of(self, topics: Collection[str]) -> Layout:
        """Return the layout of these topics alone."""
        return Layout(
            {topic: n for topic, n in self.counts.items() if topic in topics},
            {tp: node for tp, node in self.leaders.items() if tp.topic in topics},
            {tp: racks for tp, racks in self.racks.items() if tp.topic in topics},
        )

    def has_racks_beyond(self, old: Layout) -> bool:
        """Whether a partition is in a rack in which it was not before.

        A partition that has left a rack does not count: its broker may be restarting.
        """
        return any(
            not racks <= old.racks.get(tp, frozenset())
            for tp, racks in self.racks.items()
        )

    def is_near(self, tp: TopicPartition, rack: str | None) -> bool:
        """Whether that rack has a replica; without a rack every partition is near."""
        return rack is None or rack in self.racks.get(tp, ())
