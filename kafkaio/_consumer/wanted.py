"""The user's choice of what to read: topics, a pattern, or fixed partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from kafkaio._arguments import partitions_of, topics_of
from kafkaio._dataclass import dataclass
from kafkaio._generic import KeyT, ValueT
from kafkaio._machines.metadata import ClusterView
from kafkaio._topic import ReadableTopic, Topic
from kafkaio.errors import ArgumentValueError, UsageError
from kafkaio.types import TopicPartition

#: One topic, several topics, or every topic whose whole name a pattern matches.
Names: TypeAlias = str | Collection[str] | re.Pattern[str]
#: The same, or topics that know the types of their keys and values, also mixed.
Topics: TypeAlias = (
    str
    | re.Pattern[str]
    | ReadableTopic[KeyT, ValueT]
    | Collection[str | ReadableTopic[KeyT, ValueT]]
)
#: The same, whatever the types are.
AnyTopics: TypeAlias = Topics[object, object]
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
        typed: the topics that have serdes, by name; some of `topics`.
    """

    topics: frozenset[str] | None = None
    pattern: re.Pattern[str] | None = None
    partitions: tuple[TopicPartition, ...] | None = None
    # What is read is the same whatever the serdes are.
    typed: Mapping[str, Topic[Any, Any]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, topics: AnyTopics | None, partitions: Iterable[TopicPartition] | None
    ) -> ReadSelection:
        """Check the arguments of a user, and return the selection.

        An empty collection of topics or of partitions selects nothing, as in Java.

        Raises:
            ArgumentTypeError: an argument, or an item of it, has the wrong type.
            ArgumentValueError: the name of a topic is empty or looks like a pattern, or
                a number is negative; or two topics have the same name and different
                serdes.
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
        names, typed = _names_and_topics(topics)
        for name in names:
            if not _PATTERNS.isdisjoint(name):
                raise ArgumentValueError(
                    f"topics: no topic can be called {name!r}; for all topics that a "
                    f"pattern matches, give re.compile({name.removeprefix('^')!r})"
                )
        return cls(topics=frozenset(names) or None, typed=typed)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be read."""
        return not self.is_subscription and self.partitions is None

    @property
    def is_subscription(self) -> bool:
        """Whether topics are to be read, rather than fixed partitions."""
        return self.topics is not None or self.pattern is not None

    def typed_after(
        self, before: Mapping[str, Topic[Any, Any]]
    ) -> dict[str, Topic[Any, Any]]:
        """Return the topics with serdes once this is selected.

        Topics that are not read any more keep theirs: records of them may be in hand.

        Args:
            before: those of the selection before.
        """
        if self.pattern is not None:
            return {}
        named = self.topics or {tp.topic for tp in self.partitions or ()}
        kept = {name: topic for name, topic in before.items() if name not in named}
        return kept | dict(self.typed)

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


def _names_and_topics(
    topics: AnyTopics,
) -> tuple[tuple[str, ...], dict[str, Topic[Any, Any]]]:
    given: object = [topics] if isinstance(topics, str | Topic) else topics
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        return topics_of(given), {}  # type: ignore[arg-type]  # which raises
    names: list[str] = []
    typed: dict[str, Topic[Any, Any]] = {}
    for topic in given:
        if not isinstance(topic, Topic):
            names.append(topic)
            continue
        names.append(topic.name)
        first = typed.setdefault(topic.name, topic)
        if first.key is not topic.key or first.value is not topic.value:
            raise ArgumentValueError(
                f"topics: {topic.name!r} is there twice, with different serdes"
            )
    return topics_of(names), typed
