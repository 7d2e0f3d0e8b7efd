"""Acknowledgements on their way: runs of offsets, groups of them, and their wire form.

A partition's acknowledgements in one request stand or fall together, so a request has
one *group* of each partition. `Group.halves` divides one that was refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kafkaio._machines.share.leases import Lease
from kafkaio._named_tuple import NamedTuple
from kafkaio._records._acquired import GAP

#: Kafka's number of the acknowledge type that renews a lock (KIP-1222).
RENEW: Final = 4
#: Kafka's number for an offset without a record.
_GAP: Final = 0
#: Bytes of a batch of acknowledgements beside its types: two offsets, the length of the
#: array, and the tagged fields.
_BATCH_BYTES: Final = 18


class AckRange(NamedTuple):
    """A range of offsets in an acknowledgement; the kind is Kafka's number."""

    first: int
    last: int
    kind: int


class AckBatch(NamedTuple):
    """A batch of acknowledgements as requests have it.

    Attributes:
        first: the first offset.
        last: the last offset.
        kinds: one for all offsets, or one for each.
    """

    first: int
    last: int
    kinds: tuple[int, ...]


def batches(ranges: Sequence[AckRange]) -> list[AckBatch]:
    """Return the batches of sorted ranges: as few bytes as can be had in one pass.

    Neighbours become one batch with a kind for each offset where that is smaller.
    """
    found: list[AckBatch] = []
    for first, last, kind in ranges:
        count = last - first + 1
        before = found[-1] if found else None
        if before is not None and before.last + 1 == first:
            size = before.last - before.first + 1
            # Kinds that the two have together, against those of two batches.
            apart = len(before.kinds) + 1 + _BATCH_BYTES
            if size + count < apart:
                kinds = (
                    before.kinds if len(before.kinds) == size else before.kinds * size
                )
                found[-1] = AckBatch(before.first, last, kinds + (kind,) * count)
                continue
        found.append(AckBatch(first, last, (kind,)))
    return found


class Run(NamedTuple):
    """Offsets of one lease with the same decision.

    Attributes:
        first: the first offset.
        last: the last offset.
        kind: the decision as `Acquired` has it, or `RENEW`.
        deadline: when their lock ends.
        lease: the lease.
    """

    first: int
    last: int
    kind: int
    deadline: float
    lease: Lease

    @property
    def size(self) -> int:
        """How many offsets it has."""
        return self.last - self.first + 1

    def as_range(self) -> AckRange:
        """The same as requests have it."""
        return AckRange(self.first, self.last, _GAP if self.kind == GAP else self.kind)


class Group:
    """Runs of one partition that are sent together, sorted by offset.

    Attributes:
        runs: the runs.
        due: when it may be sent; a failed attempt is not repeated at once.
        tries: how many attempts have failed.
        in_doubt: whether it was sent and had no answer, so that the leader may have
            taken it already.
    """

    __slots__ = ("due", "in_doubt", "runs", "tries")

    def __init__(
        self,
        runs: list[Run],
        *,
        due: float = 0.0,
        tries: int = 0,
        in_doubt: bool = False,
    ) -> None:
        self.runs = runs
        self.due = due
        self.tries = tries
        self.in_doubt = in_doubt

    @property
    def deadline(self) -> float:
        """When the first of its locks ends."""
        return min(run.deadline for run in self.runs)

    @property
    def is_single(self) -> bool:
        """Whether it is one offset, so that an answer is about that."""
        return len(self.runs) == 1 and self.runs[0].size == 1

    def renewals(self) -> list[Run]:
        """Its runs that renew locks."""
        return [run for run in self.runs if run.kind == RENEW]

    def drop_stale_renewals(self) -> None:
        """Drop the renewals of offsets that were decided meanwhile."""
        if self.renewals():
            self.runs = [
                run._replace(first=first, last=last)
                for run in self.runs
                for first, last in _still_meant(run)
            ]

    def decisions(self) -> list[Run]:
        """Its runs without those that renew locks."""
        return [run for run in self.runs if run.kind != RENEW]

    def ranges(self) -> tuple[AckRange, ...]:
        """What a request says of it; neighbours of one kind are one range."""
        found: list[AckRange] = []
        for each in map(Run.as_range, self.runs):
            if (
                found
                and found[-1].last + 1 == each.first
                and found[-1].kind == each.kind
            ):
                found[-1] = found[-1]._replace(last=each.last)
            else:
                found.append(each)
        return tuple(found)

    def halves(self) -> tuple[Group, Group]:
        """Divide a group that is not a single offset.

        Renewals are parted from decisions first, then leases from each other as far as
        that goes: what was acquired together is mostly lost together.
        """
        decisions = self.decisions()
        if 0 < len(decisions) < len(self.runs):
            return Group(decisions), Group(self.renewals())
        middle = len(self.runs) // 2
        if middle:
            return Group(self.runs[:middle]), Group(self.runs[middle:])
        (run,) = self.runs
        cut = run.first + run.size // 2
        return Group([run._replace(last=cut - 1)]), Group([run._replace(first=cut)])

    def cut(self, lease: Lease, first: int, last: int) -> list[Run]:
        """Take these offsets of a lease out of it, and return what it had of them."""
        kept: list[Run] = []
        removed: list[Run] = []
        for run in self.runs:
            if run.lease is not lease or run.first > last or run.last < first:
                kept.append(run)
                continue
            start, end = max(run.first, first), min(run.last, last)
            removed.append(run._replace(first=start, last=end))
            if run.first < start:
                kept.append(run._replace(last=start - 1))
            if run.last > end:
                kept.append(run._replace(first=end + 1))
        self.runs = kept
        return removed


def sorted_runs(runs: Iterable[Run]) -> list[Run]:
    """Sort runs by offset."""
    return sorted(runs, key=_first)


def _still_meant(run: Run) -> list[tuple[int, int]]:
    if run.kind != RENEW:
        return [(run.first, run.last)]
    return run.lease.acquired.held_runs(run.first, run.last)


def _first(run: Run) -> int:
    return run.first
