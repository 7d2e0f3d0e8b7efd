"""The accumulator: gathers records into batches and decides which go out when.

Theory of operation. A record is placed (`Placement`) in the open batch of its
partition, or waits undesignated while its topic is not known. Most records go directly
into the open batch, past the accumulator: the batch is leased (`Budget`). The sender
asks the `Outbox` which brokers have something to send, and drains them. Each attempt to
send a batch ends once (`Completion`): the batch is acknowledged, sent again, or failed.
The `Gate` decides which batches may be sent, and which may be leased. All parts work on
one `Backlog`, the records held.

The parts never perform I/O and read no clock: times are arguments, in seconds of one
monotonic clock. The bytes of all batches together never exceed ``buffer_memory``.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator.availability import Availability
from kafkaio._machines.accumulator.budget import Budget
from kafkaio._machines.accumulator.completion import Completion
from kafkaio._machines.accumulator.gate import Barrier, Gate
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.outbox import Outbox
from kafkaio._machines.accumulator.placement import Chooser, Placement
from kafkaio._machines.accumulator.queue import Backlog, ProduceBatch, Receipt
from kafkaio._machines.accumulator.share import BufferShare
from kafkaio._machines.sequence import ProducerIdentity
from kafkaio._public import public
from kafkaio._records._impl import OpenBatches
from kafkaio._records.builder import BatchBuilder


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatistics:
    """A snapshot of an accumulator.

    Attributes:
        topics: topics written to.
        used_bytes: bytes of ``buffer_memory`` in use.
        waiting_batches: batches that are open or ready to be sent.
        batches_on_wire: batches sent and neither answered nor lost.
        undesignated_records: records whose topic is not known yet.
    """

    topics: int
    used_bytes: int
    waiting_batches: int
    batches_on_wire: int
    undesignated_records: int


class Accumulator:
    """The records of one producer from append to acknowledgement or failure.

    It holds the parts, and has the operations that concern several of them.

    Args:
        limits: sizes and times.
        chooser: chooses partitions.
        identity: the producer's identity, None without idempotence.
        new_builder: makes the builder of a batch of the given target size.
        open_batches: the batches that take records past the accumulator.
        new_receipt: makes the receipt of a topic, partition and ``count`` of records.

    Attributes:
        backlog: the records held, and what has changed.
        gate: decides which batches may be sent and leased.
        budget: the buffer memory.
        availability: which partitions cannot be written at the moment.
        share: how much of the memory these may take.
        placement: takes records in, and metadata.
        outbox: chooses the batches to send.
        completion: ends each attempt to send a batch.
    """

    def __init__(
        self,
        limits: Limits,
        chooser: Chooser,
        identity: ProducerIdentity | None,
        new_builder: Callable[[int], BatchBuilder],
        open_batches: OpenBatches,
        new_receipt: Callable[..., Receipt] = Receipt,
    ) -> None:
        self._limits = limits
        backlog = Backlog()
        gate = Gate()
        availability = Availability(limits, backlog, open_batches)
        budget = Budget(limits, gate, backlog.active, open_batches, availability)
        self.backlog: Backlog = backlog
        self.gate: Gate = gate
        self.budget: Budget = budget
        self.availability: Availability = availability
        self.share: BufferShare = BufferShare(limits, backlog, budget, availability)
        self.outbox: Outbox = Outbox(limits, backlog, gate, budget, availability)
        self.placement: Placement = Placement(
            limits,
            backlog,
            budget,
            chooser,
            identity,
            new_builder,
            availability,
            new_receipt,
        )
        self.completion: Completion = Completion(
            limits,
            backlog,
            budget,
            availability,
            new_builder,
            new_receipt,
        )
        if chooser.is_custom:
            gate.raise_barrier(Barrier.PARTITIONER)

    def expire(self, now: float) -> list[Receipt]:
        """Fail records that waited too long for metadata or for their acknowledgement.

        Returns:
            The receipts that failed by this.
        """
        expired = self.placement.expire(now) + self.completion.expire(now)
        self.backlog.expires_at = self._next_expiry()
        return expired

    def _next_expiry(self) -> float:
        earliest = self.completion.next_expiry()
        for topic in self.backlog.topics.values():
            if topic.undesignated:
                created = topic.undesignated[0].created
                earliest = min(earliest, created + self._limits.max_block)
        return earliest

    def seal(self) -> list[Receipt]:
        """Let every batch leave as soon as it can; return what is not settled yet."""
        receipts = self.completion.seal()
        for topic in self.backlog.topics.values():
            receipts += [entry.receipt for entry in topic.undesignated]
        self.backlog.has_news = True
        return receipts

    def fail_all(
        self, error: Callable[[ProduceBatch | None], Exception]
    ) -> list[Receipt]:
        """Fail all records.

        Args:
            error: makes the error of a batch, or with None that of records without a
                batch.

        Returns:
            The receipts that failed by this.
        """
        receipts = self.seal()
        self.placement.fail_all(error(None))
        self.completion.fail_all(error)
        return receipts

    def drop_unsent(
        self, error: Callable[[ProduceBatch | None], Exception]
    ) -> list[Receipt]:
        """Fail batches that were never sent, because their transaction is aborted.

        Batches that are on the wire, or that may be in the log, are kept until their
        outcome is known.

        Args:
            error: makes the error of a batch, or with None that of records without a
                batch.

        Returns:
            The receipts that failed by this.
        """
        dropped = [
            entry.receipt
            for topic in self.backlog.topics.values()
            for entry in topic.undesignated
        ]
        if dropped:
            self.placement.fail_all(error(None))
        self.backlog.has_news = True
        return dropped + self.completion.drop_unsent(error)

    def refuse(self, node_id: int, error: Exception) -> list[Receipt]:
        """Fail batches for a broker that refuses the client, if they were never sent.

        Returns:
            The receipts that failed by this.
        """
        return self.completion.drop_unsent(lambda _: error, node_id)

    def expire_at(self, deadline: float) -> None:
        """Let every batch expire at ``deadline``, unless it does so before.

        Args:
            deadline: the end of the transaction; infinity for no such end.
        """
        self.backlog.deadline = deadline
        self.backlog.expires_at = min(self.backlog.expires_at, deadline)
        self.backlog.has_news = True

    def statistics(self) -> BufferStatistics:
        """Return a snapshot."""
        queues = self.backlog.active.values()
        topics = self.backlog.topics.values()
        return BufferStatistics(
            topics=len(topics),
            used_bytes=self.budget.used_by_records,
            waiting_batches=sum(len(queue.waiting) for queue in queues),
            batches_on_wire=sum(len(queue.on_wire) for queue in queues),
            undesignated_records=sum(len(topic.undesignated) for topic in topics),
        )
