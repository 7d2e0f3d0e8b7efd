"""The user's choice of what to read: topics, a pattern, or fixed partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

from kafkaio._arguments import partitions_of, topics_of
from kafkaio._dataclass import dataclass
from kafkaio._machines.metadata import ClusterView
from kafkaio.errors import ArgumentValueError, UsageError
from kafkaio.types import TopicPartition

#: One topic, several topics, or every topic whose whole name a pattern matches.
Topics: TypeAlias = str | Collection[str] | re.Pattern[str]
#: Characters of patterns that cannot be part of a topic's name. A name with one of them
#: is a pattern by mistake, which would match nothing for ever.
_PATTERNS = frozenset("^$*+?()[]{}|\\")


@dataclass(frozen=True, slots=True)
class ReadSelection:
    """The topics or partitions that a consumer reads; at most one attribute is set.

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
    ) -> ReadSelection:
        """Check the arguments of a user, and return the selection.

        An empty collection of topics or of partitions selects nothing, as in Java.

        Raises:
            ArgumentTypeError: an argument, or an item of it, has the wrong type.
            ArgumentValueError: the name of a topic is empty or looks like a pattern, or
                a number is negative.
            UsageError: both are given.
        """
        if topics is not None and partitions is not None:
            raise UsageError("give topics to subscribe to, or partitions, not both")
        if partitions is not None:
            return cls(
                partitions=tuple(dict.fromkeys(partitions_of(partitions))) or None
            )
        if topics is None:
            return cls()
        if isinstance(topics, re.Pattern):
            return cls(pattern=topics)
        names = topics_of(topics)
        for name in names:
            if not _PATTERNS.isdisjoint(name):
                raise ArgumentValueError(
                    f"topics: no topic can be called {name!r}; for all topics that a "
                    f"pattern matches, give re.compile({name.removeprefix('^')!r})"
                )
        return cls(topics=frozenset(names) or None)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be read."""
        return not self.is_subscription and self.partitions is None

    @property
    def is_subscription(self) -> bool:
        """Whether topics are to be read, rather than fixed partitions."""
        return self.topics is not None or self.pattern is not None

    def partitions_in(
        self, cluster: ClusterView, *, with_internal: bool
    ) -> set[TopicPartition]:
        """Return all partitions of the selected topics in a view.

        Args:
            cluster: the view of the cluster.
            with_internal: whether a pattern matches internal topics, too.
        """
        return {
            TopicPartition(name, number)
            for name in cluster.topics
            if self.matches(name)
            and (self.pattern is None or with_internal or not cluster.is_internal(name))
            for number in range(cluster.partition_count(name) or 0)
        }

    def matches(self, topic: str) -> bool:
        """Whether a topic of that name is to be read."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in (self.topics or ())
