"""The committed offsets of one group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

__all__ = ["Committed", "Offsets", "Place"]

#: A partition: the topic's name and the partition's number.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset.

    Attributes:
        offset: the offset.
        leader_epoch: leader epoch of the last record before it; -1 for none.
        metadata: what the client committed with it.
        timestamp: when it was committed, in milliseconds of the wall clock.
        expires: when it expires, likewise, if the client asked for a retention time
            (up to version 4); then the group's retention does not apply.
        topic_id: id of the topic, if it is known. A topic that is created again under
            the same name has no committed offsets.
    """

    offset: int
    leader_epoch: int
    metadata: str
    timestamp: int
    expires: int | None = None
    topic_id: UUID | None = None


class Offsets:
    """The committed offsets of a group, by partition."""

    def __init__(self) -> None:
        self._places: dict[Place, Committed] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def put(self, place: Place, committed: Committed) -> None:
        """Set the committed offset of a partition; it may be lower than before."""
        self._places[place] = committed

    def get(self, place: Place) -> Committed | None:
        """Return the committed offset of a partition; None for none."""
        return self._places.get(place)

    def drop(self, place: Place) -> bool:
        """Delete the committed offset of a partition; return whether there was one."""
        return self._places.pop(place, None) is not None

    def places(self) -> list[Place]:
        """Return every partition with a committed offset, sorted."""
        return sorted(self._places)

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions with a committed offset by topic, sorted."""
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
        """Return the partitions whose committed offset has expired.

        Args:
            now_ms: the wall clock.
            retention_ms: how long offsets are kept.
            since_ms: when the group became empty; None to count from each commit, as
                for a group that never had members (KIP-211).
            subscribed: topics that members subscribe to: their offsets do not expire.
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
