"""The committed offsets of one group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

__all__ = ["Committed", "Offsets", "Place"]

#: A topic's name and the number of a partition.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed position.

    Attributes:
        timestamp: when it was committed, in milliseconds of the wall clock.
        expires: when it may be forgotten, if the client asked for a time (version 4
            and before); then the group's retention does not count.
        topic_id: of which topic, if that is known: one that is made anew under the
            name of another has no positions yet.
    """

    offset: int
    leader_epoch: int
    metadata: str
    timestamp: int
    expires: int | None = None
    topic_id: UUID | None = None


class Offsets:
    """What a group has committed, by topic and partition."""

    def __init__(self) -> None:
        self._places: dict[Place, Committed] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def put(self, place: Place, committed: Committed) -> None:
        """Keep a position, whether or not it is behind the last one."""
        self._places[place] = committed

    def get(self, place: Place) -> Committed | None:
        """Return what was committed last, None if nothing was."""
        return self._places.get(place)

    def drop(self, place: Place) -> bool:
        """Forget a position; say whether there was one."""
        return self._places.pop(place, None) is not None

    def places(self) -> list[Place]:
        """Return every topic and partition with a position, in order."""
        return sorted(self._places)

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions with a position by topic, in order."""
        found: dict[str, list[int]] = {}
        for topic, partition in self.places():
            found.setdefault(topic, []).append(partition)
        return found

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        since_ms: int | None,
        subscribed: Iterable[str] = (),
    ) -> list[Place]:
        """Return the positions whose time is over.

        Args:
            now_ms: the wall clock.
            retention_ms: how long positions are kept.
            since_ms: since when the group is empty; None counts from each commit, as
                for a group that never had members (KIP-211).
            subscribed: topics that members still read: they do not expire.
        """
        kept = set(subscribed)
        return [
            place
            for place in self.places()
            if place[0] not in kept
            and now_ms >= _end(self._places[place], retention_ms, since_ms)
        ]


def _end(committed: Committed, retention_ms: int, since_ms: int | None) -> int:
    if committed.expires is not None:
        return committed.expires
    since = committed.timestamp if since_ms is None else since_ms
    return max(since, committed.timestamp) + retention_ms
