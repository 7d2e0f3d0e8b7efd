"""What members of a group of the consumer protocol read, and what there is of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from math import inf
from uuid import UUID

from kafkaio.testing.groups.home import Home
from kafkaio.testing.groups.kip848_member import ConsumerMember
from kafkaio.testing.groups.regex import compile_re2

__all__ = ["Subscriptions"]


class Subscriptions:
    """Topics by name, by pattern and by id; pure: time is an argument.

    Args:
        home: where topics are.
        refresh_interval: how often patterns are matched again, in seconds.
    """

    def __init__(self, home: Home, refresh_interval: float) -> None:
        self._home = home
        self._refresh_interval = refresh_interval
        #: The names that each pattern matched.
        self.matches: dict[str, frozenset[str]] = {}
        #: Id and number of partitions of each topic that is read, when last looked at.
        self.shape: dict[str, tuple[UUID, int]] = {}
        #: When patterns are to be matched.
        self.due = inf

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member reads."""
        return member.names | self.matches.get(member.regex or "", frozenset())

    def wanted(self, member: ConsumerMember) -> frozenset[UUID]:
        """Return the ids of the topics that a member reads and that there are."""
        names = self.topics_of(member) & self.shape.keys()
        return frozenset(self.shape[name][0] for name in names)

    @property
    def partitions(self) -> Mapping[UUID, int]:
        """How many partitions each topic has that is read."""
        return dict(self.shape.values())

    @property
    def fingerprint(self) -> int:
        """Another number if topics were read otherwise, 0 for none.

        Kafka computes its own in another way; it only compares them.
        """
        if not self.shape:
            return 0
        shape = sorted(
            f"{name} {topic_id} {count}"
            for name, (topic_id, count) in self.shape.items()
        )
        digest = blake2b("\n".join(shape).encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)

    def look(self, members: Iterable[ConsumerMember]) -> bool:
        """Say whether topics that members read came, went or grew."""
        shape: dict[str, tuple[UUID, int]] = {}
        for name in sorted(frozenset().union(*map(self.topics_of, members))):
            topic_id = self._home.topic_id(name)
            if topic_id is not None:
                shape[name] = topic_id, self._home.partition_count(name)
        is_changed = shape != self.shape
        self.shape = shape
        return is_changed

    def find(self, members: Iterable[ConsumerMember], now: float) -> None:
        """Have patterns that are new matched soon: an answer does not wait for it."""
        patterns = {one.regex for one in members if one.regex}
        self.matches = {
            one: names for one, names in self.matches.items() if one in patterns
        }
        if patterns - self.matches.keys():
            self.due = now
        elif not patterns:
            self.due = inf

    def resume(self, members: Iterable[ConsumerMember], now: float) -> None:
        """Look at topics after ``matches`` were taken over from somebody else."""
        members = list(members)
        self.due = now + self._refresh_interval if self.matches else inf
        self.find(members, now)
        self.look(members)

    def match(self, members: Iterable[ConsumerMember], now: float) -> bool:
        """Match all patterns against all topics; say whether one matches others."""
        patterns = {one.regex for one in members if one.regex}
        names = list(self._home.topic_names())
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
