"""Which partitions are new to a consumer: those added after it had subscribed.

`NewPartitionDetector` remembers the topics as they were at the subscription: the id of
each topic and its number of partitions. A partition is new

* if its number is beyond that;
* if its topic did not exist then, or was deleted and created again since: it has
  another id.

Topics that are named are remembered as soon as the metadata describes them, or says
that they do not exist. With a pattern the caller lists the topics of the cluster once.
Topics that the previous subscription had, too, stay as they were remembered.

A consumer that has just started cannot find partitions in this way that were added
while its whole group was down. `follows_committed` can: new partitions always get the
highest numbers. So a partition with a higher number than all those for which the group
has committed offsets was added after them; any other existed when they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from kafkaio._machines.metadata import ClusterView
from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition


class KnownTopic(NamedTuple):
    """A topic as it was when it was subscribed to.

    Attributes:
        topic_id: its id; None if it did not exist, or brokers (before 2.8) have none.
        size: number of its partitions; 0 if it did not exist.
    """

    topic_id: UUID | None
    size: int


_ABSENT = KnownTopic(None, 0)


class NewPartitionDetector:
    """Remembers the topics as they were at the subscription."""

    __slots__ = ("_known", "_lists_all", "_names", "_since")

    def __init__(self) -> None:
        self._known: dict[str, KnownTopic] = {}
        # Topics that exist, or that the user named, and that no view has described yet.
        self._names: frozenset[str] = frozenset()
        # Whether all topics were listed: one that is not known was created later.
        self._lists_all = False
        # The number of the view at the subscription. A topic that this view lacks may
        # have existed all the same; only a newer view proves that it did not.
        self._since = 0

    def subscribed(
        self,
        matches: Callable[[str], bool],
        names: Collection[str],
        view: ClusterView,
    ) -> None:
        """Note a subscription, which replaces the one before.

        Args:
            matches: whether a topic is subscribed to.
            names: the topics that are named; none for a pattern, which needs `listed`.
            view: the metadata now.
        """
        # Topics in both subscriptions stay as remembered: partitions that are new to
        # the user remain new after another subscription.
        self._known = {name: t for name, t in self._known.items() if matches(name)}
        self._lists_all = False
        self._names = frozenset(names) - self._known.keys()
        self._since = view.number
        self.described(view)

    def described(self, view: ClusterView) -> None:
        """Take new metadata."""
        if not self._names:
            return
        for name in self._names:
            count = view.partition_count(name)
            error = view.topic_error(name)
            if count is not None:
                self._known[name] = KnownTopic(view.topic_id(name), count)
            elif (
                error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                and view.number > self._since
            ):
                self._known[name] = _ABSENT
        self._names -= self._known.keys()

    def listed(self, topics: Mapping[str, KnownTopic | None]) -> None:
        """Take the list of all topics that match the subscribed pattern.

        Args:
            topics: by name; None for one that the broker could not describe.
        """
        known = {name: topic for name, topic in topics.items() if topic is not None}
        self._known = {**known, **self._known}
        self._names = frozenset(topics) - self._known.keys()
        self._lists_all = True

    def is_new(self, tp: TopicPartition, view: ClusterView) -> bool | None:
        """Whether a partition was added after the subscription; None if unknown yet."""
        known = self._known.get(tp.topic)
        if known is None:
            is_later = self._lists_all and tp.topic not in self._names
            return True if is_later else None
        return self.is_created_again(tp.topic, view) or tp.partition >= known.size

    def sisters(self, topic: str) -> frozenset[TopicPartition]:
        """Return the partitions that the topic had at the subscription."""
        known = self._known.get(topic, _ABSENT)
        return frozenset(TopicPartition(topic, n) for n in range(known.size))

    def is_created_again(self, topic: str, view: ClusterView) -> bool:
        """Whether a topic is another one than at the subscription."""
        known, topic_id = self._known.get(topic), view.topic_id(topic)
        return (
            known is not None
            and known.topic_id is not None
            and topic_id is not None
            and topic_id != known.topic_id
        )


def follows_committed(
    partitions: Collection[TopicPartition], committed: Collection[TopicPartition]
) -> frozenset[TopicPartition]:
    """Return the partitions that were added after those with committed offsets.

    Args:
        partitions: partitions without a committed offset.
        committed: partitions of the same topics that have one.
    """
    # A topic without any committed offset was perhaps never read: nothing of it is new.
    last: dict[str, int] = {}
    for tp in committed:
        last[tp.topic] = max(tp.partition, last.get(tp.topic, -1))
    return frozenset(
        tp for tp in partitions if tp.partition > last.get(tp.topic, tp.partition)
    )
