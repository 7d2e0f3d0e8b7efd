"""The budget: how much of ``buffer_memory`` the records of a producer use.

A record is charged with the bytes that it adds to its batch. A batch returns its charge
when its last attempt has ended, not when its receipt is settled: a batch that expired
on the wire still needs its memory.

Most records go into the open batch of their partition without a call of the
accumulator (see `kafkaio._records._append`). Such a batch is *leased*: it is charged in
advance with the bytes that it may still use. That is all up to its target size, or a
share of the free memory where there are so many partitions that such charges would fill
the buffer; for records without a key at least what they bring to one partition. When
the lease ends, the unused part is returned. A lease ends before anything else is done
with the batch.
"""

from __future__ import annotations

from collections.abc import Sized

from kafkaio._machines.accumulator.availability import Availability
from kafkaio._machines.accumulator.gate import Gate
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import PlainRecord, ProduceBatch, TopicQueues
from kafkaio._records._impl import OpenBatches
from kafkaio._records.builder import BatchBuilder
from kafkaio.errors import RecordTooLarge
from kafkaio.types import TopicPartition

#: A smaller lease costs more than the calls that it saves.
_LEAST_LEASE = 1_024
#: More than any batch can reach.
_NO_LIMIT = 2**31 - 1


class Budget:
    """Charges batches, and leases them to the open batches.

    Args:
        limits: sizes and times.
        gate: decides whether a batch may be leased.
        active: the partitions with batches; they share the memory that is left.
        open_batches: the batches that take records past the accumulator.
        availability: says which partitions cannot be written.

    Attributes:
        held_back: partitions for which calls wait although there may be memory.
        largest: bytes of the largest record that can ever be sent.
        used: bytes of ``buffer_memory`` in use. Invariant: it is the sum of the charges
            of all batches and undesignated records and of what `reserve` set aside, and
            at most ``limits.buffer_memory``. The other parts subtract from it what they
            no longer need.
        open_batches: as above. Invariant: a batch is open there if and only if it is
            leased.
    """

    __slots__ = (
        "_active",
        "_availability",
        "_gate",
        "_leased",
        "_limits",
        "_reserved",
        "_stalled_memory",
        "held_back",
        "largest",
        "open_batches",
        "used",
    )

    def __init__(
        self,
        limits: Limits,
        gate: Gate,
        active: Sized,
        open_batches: OpenBatches,
        availability: Availability,
    ) -> None:
        self._availability = availability
        self._stalled_memory = limits.stalled_memory
        self._reserved = limits.reserved_memory
        self.held_back: set[TopicPartition] = set()
        self._limits = limits
        self._gate = gate
        self._active = active
        self.largest: int = min(limits.max_request_size, limits.buffer_memory)
        # In the order of their leases; a dict, so that ending one is one step.
        self._leased: dict[ProduceBatch, None] = {}
        self.open_batches: OpenBatches = open_batches
        self.used: int = 0
        gate.on_raised(self.end_leases)

    @property
    def used_by_records(self) -> int:
        """Bytes in use, without the unused parts of leases."""
        return self.used - sum(
            batch.charged - batch.builder.size_bytes for batch in self._leased
        )

    def size_of(self, record: PlainRecord) -> int:
        """Return the most bytes that a record can take up.

        Raises:
            RecordTooLarge: it can never be sent with the limits that are set.
        """
        _, key, value, headers = record
        size = BatchBuilder.size_of(key, value, headers)
        if size > self.largest:
            raise RecordTooLarge(
                f"the record takes up to {size} bytes with its batch header, more than "
                f"max_request_size={self._limits.max_request_size} or "
                f"buffer_memory={self._limits.buffer_memory} allow"
            )
        return size

    def reserve(self, size: int) -> bool:
        """Set ``size`` bytes aside; False if there is not enough memory."""
        if self.used + size > self._limits.buffer_memory:
            self.end_leases()
            if self.used + size > self._limits.buffer_memory:
                return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        """Return bytes that were set aside."""
        self.used -= size

    def charge(self, topic: TopicQueues, batch: ProduceBatch, before: int) -> int:
        """Charge a batch, which had ``before`` bytes, with the record appended to it.

        The batch is leased if the gate allows it.

        Returns:
            The bytes that the record takes.
        """
        builder = batch.builder
        assert isinstance(builder, BatchBuilder)  # an encoded one takes no records
        added = builder.size_bytes - before
        batch.charged += added
        self.used += added
        self.open_batches.taken += added
        if self._gate.may_lease():
            self._lease(topic, batch, builder)
        else:
            builder.promise(0)
        return added

    def _lease(
        self, topic: TopicQueues, batch: ProduceBatch, builder: BatchBuilder
    ) -> None:
        rest = self._limits.batch_size - batch.charged
        # With hundreds of partitions the buffer could not hold a whole batch for each.
        others = max(topic.partition_count, len(self._active))
        free = self._limits.buffer_memory - self.used
        # The reserve for partitions that hold little is not leased.
        share = (free if others == 1 else free - self._reserved) // others
        if batch.partition.partition == topic.sticky.partition:
            # Records without a key fill this partition alone, until the next draw. They
            # may use the reserve, because they leave a partition that is stalled.
            # Without a lease each of them would come to the accumulator where there are
            # thousands of partitions, or while the buffer is nearly full.
            share = max(share, min(topic.sticky.left, free))
        if share >= rest:
            size, limit = rest, _NO_LIMIT
        else:
            size, limit = share, batch.charged + share
        if (
            size <= 0
            or size < min(rest, _LEAST_LEASE)
            or (
                (self.held_back or self.used + size > self._stalled_memory)
                and self._is_held(topic, batch)
            )
        ):
            builder.promise(0)
            return
        builder.promise(limit)
        batch.is_leased = True
        batch.charged += size
        self.used += size
        self._leased[batch] = None
        self.open_batches.open(
            *batch.partition,
            topic.partition_count,
            (builder, batch.receipt),
            limit,
        )

    def _is_held(self, topic: TopicQueues, batch: ProduceBatch) -> bool:
        # A partition without progress must not grow past the share unnoticed: each of
        # its records has to come through the accumulator.
        queue = topic.queues[batch.partition.partition]
        return batch.partition in self.held_back or self._availability.is_avoided(queue)

    def withdraw(self, batch: ProduceBatch) -> None:
        """End a lease in order to append to the batch, which is then leased anew."""
        if not batch.is_leased:
            return
        self.open_batches.close(*batch.partition)
        batch.is_leased = False
        del self._leased[batch]
        unused = batch.charged - batch.builder.size_bytes
        batch.charged -= unused
        self.used -= unused

    def end_lease(self, batch: ProduceBatch) -> None:
        """Let no more records into the batch past the accumulator."""
        if batch.is_leased:
            self.withdraw(batch)
            # From now on the batch is charged for its records alone, so the builder
            # must not allocate ahead.
            assert isinstance(batch.builder, BatchBuilder)  # else not leased
            batch.builder.promise(0)

    def end_leases(self) -> None:
        """End all leases: the next record of each batch comes to the accumulator."""
        for batch in list(self._leased):
            self.end_lease(batch)
