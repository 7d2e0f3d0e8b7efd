"""What the user wants to read: topics, a pattern of topics, or fixed partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.metadata import ClusterView
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition

__all__ = ["Topics", "Wish"]

#: One topic, several, or all whose whole name a pattern matches.
Topics: TypeAlias = str | Collection[str] | re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Wish:
    """Exactly one of the attributes is set, or none for nothing at all.

    Attributes:
        topics: names of topics.
        pattern: matches whole names of topics.
        partitions: fixed partitions.
    """

    topics: frozenset[str] | None = None
    pattern: re.Pattern[str] | None = None
    partitions: tuple[TopicPartition, ...] | None = None

    @classmethod
    def of(
        cls, topics: Topics | None, partitions: Iterable[TopicPartition] | None
    ) -> Wish:
        """Read the arguments that users give.

        Raises:
            UsageError: both are given, or a topic has no name.
        """
        if topics is not None and partitions is not None:
            raise UsageError("give topics to subscribe to, or partitions, not both")
        if partitions is not None:
            return cls(partitions=tuple(dict.fromkeys(_checked(p) for p in partitions)))
        if topics is None:
            return cls()
        if isinstance(topics, re.Pattern):
            return cls(pattern=topics)
        names = frozenset([topics] if isinstance(topics, str) else topics)
        if not all(names):
            raise UsageError("a topic needs a name")
        return cls(topics=names)

    @property
    def is_subscription(self) -> bool:
        """Whether topics are wanted, rather than fixed partitions."""
        return self.topics is not None or self.pattern is not None

    def partitions_in(
        self, cluster: ClusterView, *, with_internal: bool
    ) -> set[TopicPartition]:
        """Every partition of the topics wanted that the cluster has."""
        return {
            TopicPartition(name, number)
            for name in cluster.topics
            if self.matches(name)
            and (self.pattern is None or with_internal or not cluster.is_internal(name))
            for number in range(cluster.partition_count(name) or 0)
        }

    def matches(self, topic: str) -> bool:
        """Whether a topic of that name is wanted."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in (self.topics or ())


def _checked(partition: object) -> TopicPartition:
    if (
        not isinstance(partition, tuple)
        or len(partition) != 2
        or not isinstance(partition[0], str)
        or not isinstance(partition[1], int)
    ):
        raise UsageError(f"{partition!r} is no TopicPartition")
    return TopicPartition(*partition)
