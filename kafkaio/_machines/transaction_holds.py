"""Which partitions a transaction works on, and what a rebalance does to them.

A transaction works on a partition from the first record of it that is handed out. From
then on the partition is held (`kafkaio._machines.membership.ledger` counts the holds),
so that no other member gets it before the transaction has ended. This machine remembers
each such partition with the number of its assignment and with its *place*: where the
transaction began to read it. It compares them with the assignments in force whenever
these change, and says once of each partition that its revocation was requested, and
once that it was lost.

Invariant: a partition that was lost stays lost, also if it is assigned again: records
of the assignment that ended are in the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kafkaio._machines.membership.ledger import Claim
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["Changes", "TransactionHolds"]

_NOTHING: frozenset[TopicPartition] = frozenset()


class Changes(NamedTuple):
    """What happened to the partitions of a transaction since the last look.

    Attributes:
        requested: partitions whose revocation was requested.
        lost: partitions whose assignment has ended.
    """

    requested: frozenset[TopicPartition]
    lost: frozenset[TopicPartition]


class TransactionHolds:
    """The partitions that one transaction works on."""

    __slots__ = ("_claims", "_places", "_requested", "lost")

    def __init__(self) -> None:
        self._claims: dict[TopicPartition, Claim] = {}
        self._places: dict[TopicPartition, OffsetAndMetadata] = {}
        self._requested = _NOTHING
        #: Partitions whose assignment has ended.
        self.lost: frozenset[TopicPartition] = _NOTHING

    def __contains__(self, tp: object) -> bool:
        return tp in self._claims

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Every partition that the transaction works on, lost ones included."""
        return frozenset(self._claims)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The assignments that the transaction works on."""
        return tuple(self._claims.values())

    def add(self, claim: Claim, place: OffsetAndMetadata) -> None:
        """A record of a partition is handed out.

        Args:
            claim: the partition, of which no record was handed out before.
            place: the offset of that record.
        """
        self._claims[claim.partition] = claim
        self._places[claim.partition] = place

    def look(
        self,
        numbers: Mapping[TopicPartition, int],
        pending: Collection[TopicPartition],
    ) -> Changes:
        """Compare with the assignments in force.

        Args:
            numbers: the number of each assignment.
            pending: the partitions whose revocation is requested.

        Returns:
            What was not returned before.
        """
        lost = frozenset(
            claim.partition
            for claim in self._claims.values()
            if numbers.get(claim.partition) != claim.number
        )
        requested = self._claims.keys() & frozenset(pending)
        changes = Changes(
            frozenset(requested) - self._requested - lost - self.lost,
            lost - self.lost,
        )
        self._requested |= changes.requested
        self.lost |= changes.lost
        return changes

    def kept(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the transaction began to read each partition that was not lost."""
        return {tp: at for tp, at in self._places.items() if tp not in self.lost}
