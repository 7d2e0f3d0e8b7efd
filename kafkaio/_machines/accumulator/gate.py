"""The gate: which batches may be sent, and whether records may bypass the accumulator.

The outbox asks the gate before it takes a batch of a partition, and the budget asks it
before it leases a batch, that is, before it lets records into the batch past the
accumulator. No other part decides either question. So a rule that must hold for every
record, such as "none while calls wait for buffer memory", is stated here once.

A *barrier* is a reason why records must go through the accumulator. While there is
one, no batch is leased; raising one ends all leases at once.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from enum import Enum, auto

from kafkaio._machines.accumulator.queue import PartitionQueue, ProduceBatch
from kafkaio.types import TopicPartition


class Barrier(Enum):
    """Why records must go through the accumulator."""

    #: Calls wait for buffer memory; a record past the accumulator would overtake them.
    BACKPRESSURE = auto()
    #: The producer is closed: it takes no record.
    CLOSED = auto()
    #: No transaction of a transactional producer is open: it takes no record.
    NO_TRANSACTION = auto()
    #: A partitioner of the user's must be called with every record.
    PARTITIONER = auto()
    #: Calls wait for a serializer; a record past the accumulator would overtake them.
    SERIALIZER = auto()


class Gate:
    """Decides what may be sent and what may be leased.

    Attributes:
        admitted: the partitions to which new batches may be sent: those that are in the
            open transaction. None for all.
        is_lone: whether the next record is sent before another one can join it, so that
            its batch needs no lease; set and reset by the sender.
    """

    __slots__ = ("_barriers", "_on_raised", "admitted", "is_lone")

    def __init__(self) -> None:
        self._barriers: set[Barrier] = set()
        self._on_raised: Callable[[], None] | None = None
        self.admitted: Set[TopicPartition] | None = None
        self.is_lone: bool = False

    def on_raised(self, end_leases: Callable[[], None]) -> None:
        """Call ``end_leases`` whenever a barrier is raised."""
        self._on_raised = end_leases

    def raise_barrier(self, barrier: Barrier) -> None:
        """Send all records through the accumulator until the barrier is removed."""
        self._barriers.add(barrier)
        if self._on_raised is not None:
            self._on_raised()

    def remove_barrier(self, barrier: Barrier) -> None:
        """Let batches be leased again, unless there is another barrier."""
        self._barriers.discard(barrier)

    def may_lease(self) -> bool:
        """Whether records may go into a batch past the accumulator."""
        return not (self.is_lone or self._barriers)

    def sendable(self, queue: PartitionQueue) -> ProduceBatch | None:
        """Return the batch of a partition that may be sent now, in this order.

        Times (linger, back-off) are not considered. With a sequence, several batches
        may be on the wire and the sequence says which one goes next. Without one, order
        can only be kept with one batch at a time.
        """
        head = queue.waiting[0] if queue.waiting else None
        if self.admitted is not None and self._must_wait(queue, head):
            head = None
        if queue.sequence is not None:
            return queue.sequence.sendable(head)
        return None if queue.on_wire else head

    def must_wait(self, queue: PartitionQueue) -> bool:
        """Whether records wait until their partition is in the transaction."""
        return bool(queue.waiting) and self._must_wait(queue, queue.waiting[0])

    def _must_wait(self, queue: PartitionQueue, head: ProduceBatch | None) -> bool:
        # A batch that was sent before goes on: its fate must become known.
        return (
            self.admitted is not None
            and head is not None
            and head.identity is None
            and queue.partition not in self.admitted
        )
