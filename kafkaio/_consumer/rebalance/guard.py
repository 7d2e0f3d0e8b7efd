"""Refuses commits that a broker would accept, though this member must not make them.

Within a generation the coordinator accepts a commit of any partition from any member:
also of a partition that has moved to another member, whose progress it would set back.
So each commit is checked here when the user calls for it, against the records that were
handed out under the present assignment. From then on its `Fence`
(`kafkaio._machines.membership.fence`) tells whether that assignment has ended.

A partition that was lost and then assigned again is a trap: it is assigned, but the
records that the user works on belong to the assignment before. As long as the user
cannot know that (`unreported`) and no record was handed out under the new assignment,
commits of it are refused.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkaio._consumer.rebalance.assignment import PartitionAssignment
from kafkaio._machines.offsets import OffsetLedger
from kafkaio.errors import PartitionLost, UsageError
from kafkaio.types import AnyRecord, TopicPartition


class CommitGuard:
    """Checks the commits that the user calls for.

    Args:
        ledger: the offsets handed out, by partition.
        assignment: the partitions that are assigned, or were.
    """

    def __init__(self, ledger: OffsetLedger, assignment: PartitionAssignment) -> None:
        self._ledger = ledger
        self._assignment = assignment

    def check(self, partitions: Collection[TopicPartition]) -> None:
        """Check partitions whose offsets the user names.

        Raises:
            PartitionLost: a partition is not assigned to this member any more, or was
                lost and is assigned again, which the user cannot know of yet.
        """
        assignment, ledger = self._assignment, self._ledger
        if not assignment.is_member:
            return
        # In their order, so that the error is the same each time.
        for tp in sorted(partitions):
            is_unreported = tp in assignment.unreported and not ledger.has_handed(tp)
            # A lost partition leaves the ledger later, when its callback's turn comes.
            is_lost = tp in assignment.lost_before_callback
            if tp not in ledger or is_unreported or is_lost:
                raise _lost(tp, self._unassigned(tp))

    def _unassigned(self, tp: TopicPartition) -> str:
        assignment = self._assignment
        was_assigned = (
            tp in assignment.given_back
            or tp in assignment.unreported
            or tp in assignment.lost_before_callback
        )
        more = " any more" if was_assigned else ""
        return f"is not assigned to this consumer{more}"

    def check_handed(self, partitions: Collection[TopicPartition]) -> None:
        """Check partitions of which the user commits all records handed out.

        Raises:
            PartitionLost: as `check`.
            UsageError: a partition is not assigned.
        """
        self.check(partitions)
        for tp in sorted(partitions):
            if tp not in self._ledger:
                if tp in self._assignment.given_back:
                    raise _lost(tp, "is not assigned to this consumer any more")
                raise UsageError(f"{tp.topic}-{tp.partition} is not assigned")

    def check_closed(self, partitions: Collection[TopicPartition]) -> None:
        """Check partitions that are committed after the consumer was closed.

        Raises:
            PartitionLost: a partition was lost, rather than released, before that.
        """
        for tp in sorted(self._assignment.lost_now.intersection(partitions)):
            raise _lost(tp, "was lost before the consumer was closed")

    def check_record(self, record: AnyRecord) -> None:
        """Check a record whose offset is to be committed.

        Raises:
            PartitionLost: it was not handed out under the present assignment.
        """
        tp, ledger = record.topic_partition, self._ledger
        is_of_old = (
            ledger.is_from_old_assignment(tp, record.offset)
            if self._assignment.is_member
            else tp in self._assignment.given_back and tp not in ledger
        )
        if is_of_old:
            raise _lost(tp, "was revoked or lost since the record was read")


def _lost(tp: TopicPartition, why: str) -> PartitionLost:
    return PartitionLost(f"{tp.topic}-{tp.partition} {why}")
