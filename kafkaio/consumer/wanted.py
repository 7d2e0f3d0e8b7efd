"""What the user wants to read: topics, a pattern of topics, or fixed partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio._machines.metadata import ClusterView
from kafkaio.consumer.arguments import partition_of
from kafkaio.errors import UsageError
from kafkaio.types import TopicPartition

__all__ = ["Topics", "Wanted"]

#: One topic, several, or all whose whole name a pattern matches.
Topics: TypeAlias = str | Collection[str] | re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Wanted:
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
    ) -> Wanted:
        """Read the arguments that users give.

        No topics at all, or no partitions, is the wanted for nothing, as in Java.

        Raises:
            UsageError: both are given, or a topic has no name.
        """
        if topics is not None and partitions is not None:
            raise UsageError("give topics to subscribe to, or partitions, not both")
        if partitions is not None:
            chosen = tuple(dict.fromkeys(partition_of(p) for p in partitions))
            return cls(partitions=chosen or None)
        if topics is None:
            return cls()
        if isinstance(topics, re.Pattern):
            return cls(pattern=topics)
        names = frozenset([topics] if isinstance(topics, str) else topics)
        if not all(names) or not _are_names(names):
            raise UsageError(f"a topic needs a name, not {sorted(map(repr, names))}")
        return cls(topics=names or None)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be read."""
        return not self.is_subscription and self.partitions is None

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


def _are_names(names: Collection[object]) -> bool:
    return all(isinstance(name, str) for name in names)
