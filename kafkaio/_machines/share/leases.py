"""What the ledger notes of each acquired range: when its locks end and are renewed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from kafkaio._records.batch import Acquired
from kafkaio.types import TopicPartition

NEVER: Final = float("inf")
#: An offset that may be locked: held, decided, or decided and on its way.
_OPEN: Final = re.compile(rb"[\x00-\x05\x10-\x15]")
_LOST_RUNS: Final = re.compile(rb"\x06+")
#: Entries of a timetable that are not valid any more, before they are swept.
_STALE: Final = 64


class Lease:
    """One acquired range, from when it was acquired until nothing of it is open.

    Attributes:
        acquired: the range.
        tp: its partition.
        open: how many of its offsets are locked as far as is known.
        renew_at: when locks are to be renewed.
        renewing: how many runs of renewals are in flight.
        slack: seconds by which the leader's locks may end later than by our clock,
            which counts from when the request was sent.
    """

    __slots__ = (
        "_handed",
        "_locks",
        "acquired",
        "open",
        "renew_at",
        "renewing",
        "slack",
        "tp",
    )

    def __init__(
        self, acquired: Acquired, tp: TopicPartition, since: float, lock: float
    ) -> None:
        self.acquired: Acquired = acquired
        self.tp: TopicPartition = tp
        self.open: int = acquired.last - acquired.first + 1
        self.renew_at: float = NEVER
        self.renewing: int = 0
        self.slack: float = 0.0
        # First offset, last offset and deadline: mostly one, more where some were
        # renewed and others not.
        self._locks: list[tuple[int, int, float]] = [
            (acquired.first, acquired.last, since + lock)
        ]
        # Offset up to which records were handed out, and when that was noticed; the
        # first entry is that nothing was handed out when the range was acquired.
        self._handed: list[tuple[int, float]] = [(acquired.first, since)]
        acquired.deadline = since + lock

    def __repr__(self) -> str:
        acquired = self.acquired
        return (
            f"<Lease {self.tp} {acquired.first} to {acquired.last} | {self.open} open>"
        )

    @property
    def expires_at(self) -> float:
        """When the first of its locks ends."""
        if not self.open:
            return NEVER
        return min((deadline for *_, deadline in self._locks), default=NEVER)

    def is_open(self, first: int, last: int) -> bool:
        """Whether any of these offsets may be locked."""
        base = self.acquired.first
        start, end = max(first - base, 0), max(last - base + 1, 0)
        return _OPEN.search(self.acquired.states, start, end) is not None

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int, float]]:
        """Return these offsets in pieces with one deadline each."""
        for start, end, deadline in self._locks:
            if start <= last and end >= first:
                yield max(start, first), min(end, last), deadline

    def expired(self, now: float) -> list[tuple[int, int]]:
        """Return the ranges whose locks have ended; `drop_expired` forgets them."""
        return [(first, last) for first, last, end in self._locks if end <= now]

    def drop_expired(self, now: float) -> None:
        """Forget the locks that have ended."""
        self._locks = [each for each in self._locks if each[2] > now]
        self._note_deadline()

    def renewed(self, first: int, last: int, deadline: float) -> None:
        """Note that the locks of these offsets end later now."""
        kept = [(first, last, deadline)]
        for start, end, before in self._locks:
            if start < first:
                kept.append((start, min(end, first - 1), before))
            if end > last:
                kept.append((max(start, last + 1), end, before))
        # What is acknowledged needs no deadline any more.
        self._locks = sorted(each for each in kept if self.is_open(each[0], each[1]))
        self._note_deadline()

    def lost(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the offsets within these that are lost."""
        base = self.acquired.first
        start, end = max(first - base, 0), max(last - base + 1, 0)
        runs = _LOST_RUNS.finditer(self.acquired.states, start, end)
        return [(base + run.start(), base + run.end() - 1) for run in runs]

    def renewable(self, now: float, longest: float) -> list[tuple[int, int]]:
        """Return the held offsets whose locks may be renewed.

        Args:
            now: the time.
            longest: seconds after which that ends: since a record was handed out, or
                since it was acquired if it was not.
        """
        handed = self._handed
        if self.acquired.handed_to > handed[-1][0]:
            handed.append((self.acquired.handed_to, now))
        found: list[tuple[int, int]] = []
        start = self.acquired.first
        for upto, since in handed[1:]:
            if now < since + longest:
                found += self.acquired.held_runs(start, upto - 1)
            start = upto
        if now < handed[0][1] + longest and start <= self.acquired.last:
            found += self.acquired.held_runs(start, self.acquired.last)
        return found

    def _note_deadline(self) -> None:
        if len(self._locks) == 1:
            self.acquired.deadline = self._locks[0][2]
            return
        held = [
            deadline
            for first, last, deadline in self._locks
            if self.acquired.held_runs(first, last)
        ]
        if held:
            self.acquired.deadline = min(held)


class Timetable:
    """The times of leases, soonest first.

    Args:
        when: returns the time of a lease as it is now. It only moves to later times,
            unless `add` is called again.
    """

    __slots__ = ("_entries", "_number", "_when")

    def __init__(self, when: Callable[[Lease], float]) -> None:
        self._when = when
        self._entries: list[tuple[float, int, Lease]] = []
        self._number = 0

    def add(self, lease: Lease) -> None:
        """Note a lease, also one that is noted, whose time has changed."""
        when = self._when(lease)
        if when != NEVER:
            self._number += 1
            heappush(self._entries, (when, self._number, lease))

    def sweep(self, live: int) -> None:
        """Drop what is not valid any more, if that is most of it."""
        if len(self._entries) > 2 * live + _STALE:
            leases = {id(lease): lease for *_, lease in self._entries}
            self._entries = [
                (when, number, lease)
                for number, lease in enumerate(leases.values())
                if (when := self._when(lease)) != NEVER
            ]
            self._number = len(leases)
            heapify(self._entries)

    def first(self) -> float:
        """Return the soonest time."""
        entries = self._entries
        while entries:
            when, _, lease = entries[0]
            if self._when(lease) == when:
                return when
            heappop(entries)  # it has been added again, or needs no time any more
        return NEVER

    def due(self, now: float) -> list[Lease]:
        """Take the leases whose time has come."""
        found: dict[int, Lease] = {}
        while self.first() <= now:
            lease = heappop(self._entries)[2]
            found[id(lease)] = lease
        return list(found.values())
