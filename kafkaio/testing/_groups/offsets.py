"""The committed offsets of one group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

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
        written: offset of its record in the offsets topic; -1 if it has none yet.
    """

    offset: int
    leader_epoch: int
    metadata: str
    timestamp: int
    expires: int | None = None
    topic_id: UUID | None = None
    written: int = field(default=-1, compare=False)


class Offsets:
    """The committed offsets of a group, by partition.

    Those of a transaction are pending until it has ended. If it commits, the record
    that was written later counts, be it the transaction's or a plain commit's.
    """

    def __init__(self) -> None:
        self._places: dict[Place, Committed] = {}
        self._pending: dict[int, dict[Place, Committed]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def put(self, place: Place, committed: Committed) -> None:
        """Set the committed offset of a partition; it may be lower than before."""
        self._places[place] = committed

    def put_pending(self, producer_id: int, place: Place, committed: Committed) -> None:
        """Set the offset that a producer's open transaction commits."""
        self._pending.setdefault(producer_id, {})[place] = committed

    def end_transaction(self, producer_id: int, *, commit: bool) -> bool:
        """End a producer's transaction; return whether offsets were pending in it."""
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return False
        for place, committed in pending.items():
            before = self._places.get(place)
            # By the place in the log and not by the time of the marker: a plain commit
            # that was written after the transaction's offset counts, although the
            # transaction ends later.
            if commit and (before is None or before.written < committed.written):
                self._places[place] = committed
        return True

    def is_pending(self, place: Place) -> bool:
        """Whether an open transaction commits an offset for a partition."""
        return any(place in places for places in self._pending.values())

    @property
    def has_pending(self) -> bool:
        """Whether any open transaction commits offsets."""
        return bool(self._pending)

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
            # The transaction may commit a newer offset.
            and not self.is_pending(place)
            and now_ms >= _end(self._places[place], retention_ms, since_ms)
        ]


def _end(committed: Committed, retention_ms: int, since_ms: int | None) -> int:
    if committed.expires is not None:
        return committed.expires
    since = committed.timestamp if since_ms is None else since_ms
    # A group that was empty for long can still commit, without members: such an offset
    # is as old as its commit.
    return max(since, committed.timestamp) + retention_ms
