"""What an assignor may know of the partitions that it divides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from kafkaio._dataclass import dataclass
from kafkaio.types import TopicPartition

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of a group's topics, and where they are.

    Attributes:
        counts: number of partitions of every known topic.
        leaders: node id of the leader of each partition that has one.
        racks: the racks in which each partition has a replica, where brokers name
            theirs (KIP-881); a replica on a broker that is down is in none.
    """

    counts: Mapping[str, int]
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    racks: Mapping[TopicPartition, frozenset[str]] = field(default_factory=dict)

    def of(self, topics: Collection[str]) -> Layout:
        """The part of it that is about these topics."""
        return Layout(
            {topic: n for topic, n in self.counts.items() if topic in topics},
            {tp: node for tp, node in self.leaders.items() if tp.topic in topics},
            {tp: racks for tp, racks in self.racks.items() if tp.topic in topics},
        )

    def has_racks_beyond(self, old: Layout) -> bool:
        """Whether a partition is in a rack by now in which it was not.

        That one has left a rack says little: its broker may only be restarting.
        """
        return any(
            not racks <= old.racks.get(tp, frozenset())
            for tp, racks in self.racks.items()
        )

    def is_near(self, tp: TopicPartition, rack: str | None) -> bool:
        """Whether who is in that rack has a replica there; no rack is near to all."""
        return rack is None or rack in self.racks.get(tp, ())
