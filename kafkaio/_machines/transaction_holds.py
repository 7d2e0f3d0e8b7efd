"""The partitions that a transaction works on, and how a rebalance changes them.

A transaction works on a partition from the first record of it that is handed out. From
then on the partition is held (`kafkaio._machines.membership.ledger` counts the holds),
so that no other member gets it before the transaction has ended. `TransactionHolds`
has each such partition with the number of its assignment and with its *place*: where
the transaction began to read it. It is compared with the assignments in force whenever
these change, and reports each requested revocation once, and each loss once.

A partition that was lost stays lost, even if it is assigned again: records of the
assignment that ended are in the transaction, so it can only be aborted. Until then,
records of the new assignment may be handed out as well. So each assignment counts for
itself: the new one is held, too, and has its own place.

Invariant: after an abort, all records that were handed out are handed out again, of
each partition that is still assigned. `kept` has a place for each partition whose
assignment in force was added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkaio._machines.membership.ledger import Claim
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import OffsetAndMetadata, TopicPartition

_NOTHING: frozenset[TopicPartition] = frozenset()


class HoldChanges(NamedTuple):
    """Changes to the partitions of a transaction since the last `update`.

    Attributes:
        requested: partitions whose revocation was requested.
        lost: partitions whose assignment has ended.
    """

    requested: frozenset[TopicPartition]
    lost: frozenset[TopicPartition]


class TransactionHolds:
    """The partitions that one transaction works on."""

    __slots__ = ("_gone", "_places", "_requested", "lost")

    def __init__(self) -> None:
        # Where the transaction began to read each assignment.
        self._places: dict[Claim, OffsetAndMetadata] = {}
        # Those that have ended.
        self._gone: frozenset[Claim] = frozenset()
        self._requested = _NOTHING
        #: Partitions whose assignment has ended.
        self.lost: frozenset[TopicPartition] = _NOTHING

    def __contains__(self, claim: object) -> bool:
        return claim in self._places

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Every partition that the transaction works on, lost ones included."""
        return frozenset(claim.partition for claim in self._places)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The assignments that the transaction works on, lost ones included."""
        return tuple(self._places)

    def add(self, claim: Claim, place: OffsetAndMetadata) -> None:
        """Note that a record of a partition is handed out.

        Args:
            claim: the assignment, of which no record was handed out before.
            place: the offset of that record.
        """
        self._places[claim] = place

    def update(
        self,
        numbers: Mapping[TopicPartition, int],
        pending: Collection[TopicPartition],
    ) -> HoldChanges:
        """Compare with the assignments in force.

        Args:
            numbers: the number of each assignment.
            pending: the partitions whose revocation is requested.

        Returns:
            The changes that were not returned before.
        """
        self._gone |= {
            claim
            for claim in self._places
            if numbers.get(claim.partition) != claim.number
        }
        lost = frozenset(claim.partition for claim in self._gone)
        requested = self.partitions & frozenset(pending)
        changes = HoldChanges(requested - self._requested - lost, lost - self.lost)
        self._requested |= changes.requested
        self.lost = lost
        return changes

    def kept(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the transaction began to read each assignment still in force."""
        return {
            claim.partition: place
            for claim, place in self._places.items()
            if claim not in self._gone
        }
