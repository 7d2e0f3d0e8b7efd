"""Completion: ends the attempts to send batches, and batches that waited too long.

Each attempt to send a batch ends once: the batch is acknowledged, is put back to be
sent again, or fails. A batch that is too large is split, and a batch that was refused
because of some records is sent again without them; both times its receipt moves to
those of the new batches. A batch that expires on the wire fails for its deliveries at
once. Its attempt still ends later, because the answer counts for the sequence, and
because its bytes stay in memory until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkaio._machines.accumulator.availability import Availability
from kafkaio._machines.accumulator.budget import Budget
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import (
    Backlog,
    PartitionQueue,
    PlainRecord,
    ProduceBatch,
    Receipt,
)
from kafkaio._records.builder import BatchBuilder
from kafkaio.errors import CorruptRecord, DeliveryTimeout, RecordTooLarge

_FOREVER = float("inf")


class Completion:
    """Settles batches, or puts them back.

    Args:
        limits: sizes and times.
        backlog: all records held.
        budget: gets the charges back.
        availability: notes which partitions could be written, and which not.
        new_builder: makes the builder of a batch of the given target size.
        new_receipt: makes the receipt of a topic, partition and ``count`` of records.
    """

    def __init__(
        self,
        limits: Limits,
        backlog: Backlog,
        budget: Budget,
        availability: Availability,
        new_builder: Callable[[int], BatchBuilder],
        new_receipt: Callable[..., Receipt],
    ) -> None:
        self._availability = availability
        self._limits = limits
        self._open_for = limits.open_for
        self._backlog = backlog
        self._budget = budget
        self._new_builder = new_builder
        self._new_receipt = new_receipt

    def acknowledged(
        self, batch: ProduceBatch, base_offset: int, log_append_time: int
    ) -> None:
        """Note that the broker has the batch."""
        queue = self._take_off_wire(batch)
        batch.breaks = 0
        if queue.sequence is not None:
            queue.sequence.acked(batch)
        if queue.is_refused:
            self._availability.attempt_ended(queue)
        if not batch.is_expired:
            batch.receipt.acknowledge(base_offset, log_append_time)
        self._return_charge(queue, batch)

    def failed(self, batch: ProduceBatch, error: Exception) -> None:
        """Note that the batch, which was on the wire, is not sent again."""
        queue = self._take_off_wire(batch)
        if queue.sequence is not None:
            queue.sequence.failed(batch)
        if not batch.is_expired:
            batch.receipt.fail(error)
        self._return_charge(queue, batch)

    def refused(
        self,
        batch: ProduceBatch,
        cause: Exception,
        retry_at: float,
        *,
        is_busy: bool = False,
    ) -> None:
        """Note that the broker did not append the batch, which is sent again.

        Args:
            batch: the batch.
            cause: why.
            retry_at: when it may be sent again.
            is_busy: whether the partition is only busy for a moment, and not stalled.
        """
        queue = self._sent_again(batch, cause, retry_at, is_busy=is_busy)
        if queue is not None and queue.sequence is not None:
            queue.sequence.refused(batch)

    def lost(self, batch: ProduceBatch, cause: Exception, retry_at: float) -> None:
        """Note that the batch may have been appended or not; it is sent again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.lost(batch)

    def out_of_order(
        self, batch: ProduceBatch, cause: Exception, retry_at: float
    ) -> None:
        """Note that the broker saw a gap before the batch, which is sent again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.out_of_order(batch)

    def forgotten(self, batch: ProduceBatch, cause: Exception, retry_at: float) -> None:
        """Note that the broker lost its sequence: number anew and send again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.forgotten(batch)

    def _sent_again(
        self,
        batch: ProduceBatch,
        cause: Exception,
        retry_at: float,
        *,
        is_busy: bool = False,
    ) -> PartitionQueue | None:
        if batch.is_expired:
            # Its deliveries have failed: it must not be written now.
            self.failed(batch, cause)
            return None
        queue = self._take_off_wire(batch)
        batch.cause = cause
        # The leader changed after the attempt: the new one can be asked at once.
        is_moved = queue.leader >= 0 and batch.sent_to != (
            queue.leader,
            queue.leader_epoch,
        )
        batch.retry_at = 0.0 if is_moved else retry_at
        queue.put_back([batch])
        if not is_moved and not is_busy:
            self._availability.attempt_failed(queue)
        return queue

    def split(
        self, batch: ProduceBatch, cause: Exception, *, may_be_written: bool = False
    ) -> None:
        """Send a batch that is too large, and has several records, as smaller batches.

        The parts take over its sequence numbers. The refused attempt does not count.
        Later batches of the topic are no larger than the parts.

        Args:
            batch: the batch.
            cause: why.
            may_be_written: whether the broker may have the batch; then its parts are
                ambiguous, because it would not recognise them as duplicates.
        """
        if (records := self._records_of(batch)) is None:
            return
        builders: list[BatchBuilder] = []
        places: list[int] = []
        half = batch.builder.size_bytes // 2
        topic = self._backlog.topics[batch.partition.topic]
        topic.batch_size = min(topic.batch_size, half)
        for record in records:
            if not builders or builders[-1].try_append(*record) < 0:
                # The first record of a batch may exceed the target, so it always fits.
                builders.append(self._new_builder(half))
                builders[-1].try_append(*record)
            places.append(len(builders) - 1)
        self._replace(batch, builders, places, {}, cause)
        if may_be_written and not batch.is_expired:
            for part in self._backlog.active[batch.partition].waiting:
                if part.rank[: len(batch.rank)] == batch.rank:
                    part.is_uncertain = part.is_ambiguous = True

    def fail_records(
        self,
        batch: ProduceBatch,
        bad: Mapping[int, Exception],
        cause: Exception,
    ) -> None:
        """Fail the listed records alone, and send the others again as one batch.

        Args:
            batch: a batch that was refused because of some of its records.
            bad: the error of each of these records, by index.
            cause: the error of the batch.
        """
        if (records := self._records_of(batch)) is None:
            return
        builders: list[BatchBuilder] = []
        places: list[int] = []
        for index, record in enumerate(records):
            if index in bad:
                places.append(-1)
                continue
            if not builders:
                builders.append(self._new_builder(2**31 - 1))
            builders[0].try_append(*record)
            places.append(0)
        self._replace(batch, builders, places, bad, cause)

    def _records_of(self, batch: ProduceBatch) -> Sequence[PlainRecord] | None:
        """Return the records of a batch; fail it if they cannot be read."""
        # Only those of a batch that was encoded elsewhere; nobody has decoded it yet.
        try:
            return list(batch.builder.records())
        except (CorruptRecord, RecordTooLarge) as error:
            self.failed(batch, error)
            return None

    def _replace(
        self,
        batch: ProduceBatch,
        builders: Sequence[BatchBuilder],
        places: Sequence[int],
        bad: Mapping[int, Exception],
        cause: Exception,
    ) -> None:
        if batch.is_expired:
            self.failed(batch, cause)
            return
        queue = self._take_off_wire(batch)
        parts = self._parts_of(batch, builders, cause)
        moved: list[tuple[Receipt, int]] = []
        next_index = [0] * len(parts)
        for index, place in enumerate(places):
            if place < 0:
                receipt = self._new_receipt(*batch.partition, count=1)
                receipt.fail(bad[index])
                moved.append((receipt, 0))
            else:
                moved.append((parts[place].receipt, next_index[place]))
                next_index[place] += 1
        if queue.sequence is not None:
            queue.sequence.replaced(batch, parts)
        queue.put_back(parts)
        batch.receipt.move(moved)
        self._return_charge(queue, batch)

    def _parts_of(
        self, batch: ProduceBatch, builders: Sequence[BatchBuilder], cause: Exception
    ) -> list[ProduceBatch]:
        parts: list[ProduceBatch] = []
        for number, builder in enumerate(builders):
            receipt = self._new_receipt(*batch.partition, count=builder.count)
            part = ProduceBatch(
                batch.partition,
                (*batch.rank, number),
                builder,
                receipt,
                batch.created,
            )
            part.is_sealed = True
            part.cause = cause
            part.attempts = batch.attempts - 1
            part.is_ambiguous = batch.is_ambiguous
            part.breaks = batch.breaks
            part.retry_at = batch.retry_at
            part.first_sent_at = batch.first_sent_at
            # The parts share the charge, so that a split never needs more memory.
            part.charged = min(batch.charged, builder.size_bytes)
            batch.charged -= part.charged
            parts.append(part)
        return parts

    def _take_off_wire(self, batch: ProduceBatch) -> PartitionQueue:
        queue = self._backlog.active[batch.partition]
        queue.on_wire.remove(batch)
        batch.is_on_wire = False
        self._backlog.has_news = True
        return queue

    def _return_charge(self, queue: PartitionQueue, batch: ProduceBatch) -> None:
        self._budget.used -= batch.charged
        batch.charged = 0
        if not queue.waiting and not queue.on_wire:
            self._backlog.active.pop(queue.partition, None)
            if queue.is_refused:
                # Without a batch, nothing would show that it can be written again.
                self._availability.attempt_ended(queue)

    # Time

    def next_expiry(self) -> float:
        """Return when the next batch expires, or is to be sealed because of its age."""
        earliest = closes_at = _FOREVER
        for queue in self._backlog.active.values():
            if queue.waiting and queue.waiting[0].created < earliest:
                earliest = queue.waiting[0].created
            if queue.waiting and not queue.waiting[-1].is_sealed:
                closes_at = min(closes_at, queue.waiting[-1].created + self._open_for)
            for batch in queue.on_wire:
                if not batch.is_expired:
                    if batch.created < earliest:
                        earliest = batch.created
                    break
        if earliest == _FOREVER:
            return closes_at
        timeout = self._limits.delivery_timeout
        expires_at = min(earliest + timeout, self._backlog.deadline)
        return min(expires_at, closes_at)

    def expire(self, now: float) -> list[Receipt]:
        """Fail the batches that were not acknowledged within ``delivery_timeout``.

        After the deadline of the backlog, fail all of them.

        A batch that has been open for long is sealed: the timeout runs from its first
        record, and later ones would fail with it.

        Returns:
            The receipts that failed by this.
        """
        expired = []
        # The same sum as in next_expiry. With another one, rounding could wake the
        # sender before the batch expires by this comparison, again and again.
        patience = self._limits.delivery_timeout
        if now >= self._backlog.deadline:
            patience = -_FOREVER
        # A copy: a queue whose last batch fails is removed from the active ones.
        for queue in list(self._backlog.active.values()):
            while queue.waiting and queue.waiting[0].created + patience <= now:
                batch = queue.waiting[0]
                self._fail_waiting(queue, batch, self._expiry(batch, patience))
                expired.append(batch.receipt)
            if queue.waiting and queue.waiting[-1].created + self._open_for <= now:
                self._budget.end_lease(queue.waiting[-1])
                queue.waiting[-1].is_sealed = True
            for batch in queue.on_wire:
                if batch.created + patience <= now and not batch.is_expired:
                    self._expire(queue, batch, self._expiry(batch, patience))
                    expired.append(batch.receipt)
        return expired

    def _expiry(self, batch: ProduceBatch, patience: float) -> DeliveryTimeout:
        limit = f"within {patience:g} s (delivery_timeout_ms)"
        if patience < 0:
            limit = "before the end of its transaction"
        return _not_acknowledged(batch, limit)

    # The end

    def seal(self) -> list[Receipt]:
        """Let every batch leave as soon as it can; return what is not settled yet."""
        receipts = []
        for queue in self._backlog.active.values():
            for batch in queue.waiting:
                self._budget.end_lease(batch)
                batch.is_sealed = True
                receipts.append(batch.receipt)
            receipts += [b.receipt for b in queue.on_wire if not b.is_expired]
        return receipts

    def drop_unsent(
        self, error: Callable[[ProduceBatch], Exception], leader: int | None = None
    ) -> list[Receipt]:
        """Fail the batches that are certainly not in the log, and will not be sent.

        Batches that are on the wire, or that an earlier attempt may have appended, are
        kept until their outcome is known.

        Args:
            error: makes the error of a batch.
            leader: the broker whose partitions are meant; None for all.

        Returns:
            The receipts that failed by this.
        """
        dropped = []
        for queue in list(self._backlog.active.values()):
            if leader is not None and queue.leader != leader:
                continue
            for batch in list(queue.waiting):
                if not batch.is_uncertain:
                    self._fail_waiting(queue, batch, error(batch))
                    dropped.append(batch.receipt)
        return dropped

    def fail_all(self, error: Callable[[ProduceBatch], Exception]) -> None:
        """Fail all batches.

        Args:
            error: makes the error of a batch.
        """
        for queue in list(self._backlog.active.values()):
            for batch in list(queue.waiting):
                self._fail_waiting(queue, batch, error(batch))
            for batch in queue.on_wire:
                if not batch.is_expired:
                    self._expire(queue, batch, error(batch))

    def _fail_waiting(
        self, queue: PartitionQueue, batch: ProduceBatch, error: Exception
    ) -> None:
        self._budget.end_lease(batch)
        queue.drop(batch)
        self._backlog.has_news = True
        batch.receipt.fail(error)
        self._return_charge(queue, batch)

    def _expire(
        self, queue: PartitionQueue, batch: ProduceBatch, error: Exception
    ) -> None:
        # It stays on the wire: the sequence needs the answer to go on after it.
        batch.is_expired = True
        if queue.sequence is not None:
            queue.sequence.expired(batch)
        batch.receipt.fail(error)


def _not_acknowledged(batch: ProduceBatch, limit: str) -> DeliveryTimeout:
    """Return the error of a batch that ran out of time; it names the last cause."""
    topic, partition = batch.partition
    if batch.is_on_wire:
        state = f"sent {batch.attempts} times, the last time without an answer yet"
        if batch.held:
            state = f"attempt {batch.attempts} was held back: {batch.held}"
    elif batch.attempts:
        state = f"sent {batch.attempts} times"
    else:
        state = "never sent"
    cause = f"; last cause: {batch.cause}" if batch.cause is not None else ""
    error = DeliveryTimeout(
        f"{topic}-{partition}: not acknowledged {limit}, {state}{cause}"
    )
    error.__cause__ = batch.cause
    return error
