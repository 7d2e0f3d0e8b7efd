"""How many records each leader may be asked for, so that a bound holds over all.

``max_in_flight`` bounds the records that are locked for a share consumer. Each fetch in
flight may bring more, so that it reserves its part until it is answered.

`ShareRoom` is fair among leaders. One with records gets an equal part of what is free;
one whose last answer was empty gets little, because it would keep its part for as long
as the fetch waits at the broker. While there is less room than leaders, they take
turns, in the order in which they asked, with fetches that wait shortly.

In the acquire mode ``record_limit`` the bound is exact. In ``batch_optimized`` a leader
locks whole batches, and exceeds its part by at most one of them. Fetches to several
leaders are in flight at once only if the room covers what each of them may lock beyond
its part, by the largest such excess so far. So what is locked exceeds ``max_in_flight``
by at most one batch, except for the first time that several leaders exceed their parts
at once, or by more than before.
"""

from __future__ import annotations

from kafkaio._named_tuple import NamedTuple

#: An idle leader is asked for this part of what is its due.
_IDLE_PART = 8


class Grant(NamedTuple):
    """What one fetch may ask for.

    Attributes:
        records: the most records.
        size: the most bytes.
        is_scarce: whether other leaders may be waiting for the room that this fetch
            keeps, so that it should wait shortly.
    """

    records: int
    size: int
    is_scarce: bool


class ShareRoom:
    """Divides the room for locked records and for fetched bytes among leaders.

    Args:
        max_records: the most records that are locked at a time.
        max_bytes: the most bytes that are fetched and not handed out.
        max_answer: the most bytes of one answer.
        is_exact: whether leaders lock no more records than they are asked for.

    Attributes:
        max_records: the most records that are locked at a time; it can be changed.
        quiet: how many answers in a row brought nothing, over all leaders.
    """

    __slots__ = (
        "_excess",
        "_idle",
        "_is_exact",
        "_max_answer",
        "_max_bytes",
        "_reserved",
        "_waiting",
        "max_records",
        "quiet",
    )

    def __init__(
        self, max_records: int, max_bytes: int, max_answer: int, *, is_exact: bool
    ) -> None:
        self.max_records: int = max_records
        self._max_bytes = max_bytes
        self._max_answer = max_answer
        self._is_exact = is_exact
        # The fetches in flight, by leader.
        self._reserved = dict[int, Grant]()
        # The leaders that found no room, in the order in which they asked.
        self._waiting = dict[int, None]()
        # Leaders whose last answer was empty.
        self._idle = set[int]()
        # The most records that an answer brought beyond what was asked for.
        self._excess = 0
        self.quiet: int = 0

    def __repr__(self) -> str:
        return (
            f"<ShareRoom {self.max_records} | {len(self._reserved)} in flight, "
            f"{len(self._waiting)} wait>"
        )

    @property
    def in_flight(self) -> int:
        """The number of fetches in flight."""
        return len(self._reserved)

    def ask(
        self, node_id: int, *, locked: int, freed: int, buffered: int, leaders: int
    ) -> Grant | None:
        """Reserve room for a fetch; None if it is another leader's turn, or for none.

        Args:
            node_id: the leader. It has no fetch in flight.
            locked: how many records are locked, over all leaders.
            freed: how many of these the same request acknowledges.
            buffered: how many bytes are fetched and not handed out.
            leaders: how many leaders are fetched from.
        """
        self._waiting.setdefault(node_id)
        before = list(self._waiting).index(node_id)
        beside = len(self._reserved)
        spare = 0 if self._is_exact else self._excess
        free = self.max_records - locked + freed
        free -= sum(grant.records + spare for grant in self._reserved.values())
        if beside or before:
            free -= spare
        free_bytes = self._max_bytes - buffered
        free_bytes -= sum(grant.size for grant in self._reserved.values())
        # Those before it need a record each, and what they may lock beyond that. A
        # leader that was just answered would take its turn again and again otherwise.
        if free <= before * (1 + spare) or free_bytes <= before:
            return None
        rest = max(leaders - beside, 1)
        records = max(1, free // rest)
        if node_id in self._idle and rest > 1:
            records = max(1, records // _IDLE_PART)
        size = max(1, min(self._max_answer, free_bytes // rest))
        # What is left for the next leader.
        left = free - records - (spare if beside else 2 * spare)
        grant = Grant(records, size, is_scarce=rest > 1 and left < rest - 1)
        del self._waiting[node_id]
        self._reserved[node_id] = grant
        return grant

    def answered(self, node_id: int, acquired: int) -> None:
        """Note that a fetch was answered; its records count as locked from now on.

        Args:
            node_id: the leader.
            acquired: how many records it locked.
        """
        grant = self._reserved.pop(node_id, None)
        if grant is not None:
            self._excess = max(self._excess, acquired - grant.records)
        if acquired:
            self.quiet = 0
            self._idle.discard(node_id)
        else:
            self.quiet += 1
            self._idle.add(node_id)

    def unanswered(self, node_id: int) -> None:
        """Note that a fetch will not be answered, or was refused."""
        self._reserved.pop(node_id, None)

    def leave(self, node_id: int) -> None:
        """Note that a leader is not to be fetched from now; it loses its turn."""
        self._waiting.pop(node_id, None)
