"""The subscriptions of a KIP-848 group, and the topics that they match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from math import inf
from uuid import UUID

from kafkaio.testing._groups.cluster_port import ClusterPort
from kafkaio.testing._groups.kip848_member import Kip848Member, sees_everything
from kafkaio.testing._groups.regex import compile_re2


def fingerprint_of(shape: Mapping[str, tuple[UUID, int]]) -> int:
    """Return a hash of topics, their ids and sizes; 0 for no topic.

    Kafka's hash is another one, but it is only compared with itself.
    """
    if not shape:
        return 0
    lines = sorted(
        f"{name} {topic_id} {count}" for name, (topic_id, count) in shape.items()
    )
    digest = blake2b("\n".join(lines).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


class Subscriptions:
    """Resolves names and patterns to topics. Time is an argument of its methods.

    Args:
        cluster: has the topics.
        refresh_interval: how often patterns are matched again, in seconds.
    """

    def __init__(self, cluster: ClusterPort, refresh_interval: float) -> None:
        self._cluster = cluster
        self._refresh_interval = refresh_interval
        #: The topic names that each pattern matched.
        self.matches: dict[str, frozenset[str]] = {}
        #: Id and number of partitions of each subscribed topic, at the last refresh.
        self.shape: dict[str, tuple[UUID, int]] = {}
        #: Whether the client of the last heartbeat may know of a topic. Patterns match
        #: what it sees, whichever member has them: so does Kafka.
        self.sees: Callable[[str], bool] = sees_everything
        #: When patterns have to be matched next.
        self.due: float = inf

    def topics_of(self, member: Kip848Member) -> frozenset[str]:
        """Return the names of the topics that a member subscribes to."""
        return member.names | self.matches.get(member.regex or "", frozenset())

    def wanted(self, member: Kip848Member) -> frozenset[UUID]:
        """Return the ids of the existing topics that a member subscribes to."""
        # Topics that do not exist yet have no id; they count from the refresh that
        # finds them.
        names = self.topics_of(member) & self.shape.keys()
        return frozenset(self.shape[name][0] for name in names)

    @property
    def partitions(self) -> Mapping[UUID, int]:
        """The number of partitions of each subscribed topic."""
        return dict(self.shape.values())

    @property
    def fingerprint(self) -> int:
        """A hash of the subscribed topics, their ids and sizes; 0 for no topic."""
        return fingerprint_of(self.shape)

    def refresh_topics(self, members: Iterable[Kip848Member]) -> bool:
        """Look the subscribed topics up again; return whether any has changed."""
        shape: dict[str, tuple[UUID, int]] = {}
        for name in sorted(frozenset().union(*map(self.topics_of, members))):
            topic_id = self._cluster.topic_id(name)
            # A change of the id is a change, too: the topic was created again, and its
            # partitions are others.
            if topic_id is not None:
                shape[name] = topic_id, self._cluster.partition_count(name)
        is_changed = shape != self.shape
        self.shape = shape
        return is_changed

    def schedule_matching(self, members: Iterable[Kip848Member], now: float) -> None:
        """Schedule the matching of new patterns, so that no answer waits for it."""
        patterns = {one.regex for one in members if one.regex}
        self.matches = {
            one: names for one, names in self.matches.items() if one in patterns
        }
        # A match takes long with many topics, so heartbeats do not wait for it.
        if patterns - self.matches.keys():
            self.due = now
        elif not patterns:
            self.due = inf

    def resume(self, members: Iterable[Kip848Member], now: float) -> None:
        """Continue after ``matches`` was restored from the offsets topic."""
        members = list(members)
        self.due = now + self._refresh_interval if self.matches else inf
        self.schedule_matching(members, now)
        self.refresh_topics(members)

    def match(self, members: Iterable[Kip848Member], now: float) -> bool:
        """Match all patterns against all topics; return whether a match changed."""
        patterns = {one.regex for one in members if one.regex}
        names = list(filter(self.sees, self._cluster.topic_names()))
        matches = {
            pattern: frozenset(filter(compile_re2(pattern).fullmatch, names))
            for pattern in patterns
        }
        is_changed = any(
            found != self.matches.get(pattern, frozenset())
            for pattern, found in matches.items()
        )
        self.matches = matches
        self.due = now + self._refresh_interval if patterns else inf
        return is_changed
