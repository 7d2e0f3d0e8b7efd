"""Gathering records into batches, and deciding which batches go out when.

Theory of operation. A record is appended to the open batch of its partition, or,
while its topic is not known, waits undesignated. The sender asks for the `outlook`:
which nodes have something to send now, and until when it may sleep. It `drain`s a
node: one batch of each of its partitions, for one request. Each batch then *lands*
once: it is acknowledged, sent again, or given up.

A batch may leave when it is full (or another waits behind it), when it has lingered,
when it was sent before, when somebody flushes or waits for buffer room, or when
nothing is on the way to its leader, since then waiting would gain nothing. When one
batch of a node may leave, the node's other batches ride along, as in Java's client.

The bytes of all batches together never exceed ``buffer_memory``: a record is charged
what it adds to its batch, and a batch's charge is returned when it has landed, not
when its senders are told, so that a batch which expired on the wire still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kafkaio._machines.accumulator.batch import ProduceBatch, Receipt
from kafkaio._machines.accumulator.intake import Intake
from kafkaio._machines.accumulator.limits import (
    AccumulatorStatistics,
    not_acknowledged,
    unknown_topic,
)
from kafkaio._machines.accumulator.node import NodeState
from kafkaio._machines.accumulator.queue import PartitionQueue
from kafkaio._records.batch import BatchBuilder

__all__ = ["Accumulator", "Outlook"]

_FOREVER = float("inf")


class Outlook(NamedTuple):
    """What the sender can do now, and when to look again.

    Attributes:
        nodes: nodes that have something to send and room for a request.
        wake_at: when something changes by itself; infinity if nothing will.
        is_leaderless: whether batches wait for a partition to get a leader.
    """

    nodes: tuple[int, ...]
    wake_at: float
    is_leaderless: bool


class Accumulator(Intake):
    """The records of one producer from append until they have landed."""

    @property
    def is_all_sent(self) -> bool:
        """Whether no record waits to be sent, be it because its topic is unknown."""
        for queue in self._active.values():
            if queue.waiting:
                return False
        return not (self._unknown and self.unknown_topics())

    # What to send.

    def outlook(self, now: float) -> Outlook:
        """Say which nodes have something to send now, and when to look again."""
        ready: list[int] = []
        # Nodes whose other partitions need no look: a ready node is asked for all its
        # batches anyway, and one that can take no request is looked at when it answers.
        done: set[int] = set()
        is_leaderless = False
        if self.is_empty:
            self.expires_at = _FOREVER
        wake_at = self.expires_at
        for queue in self._active.values():
            leader = queue.leader
            if not queue.waiting or leader in done:
                continue
            if leader < 0:
                is_leaderless |= queue.candidate() is not None
                continue
            node = self.node(leader)
            if node.in_flight >= self._limits.max_in_flight:
                done.add(leader)
                continue
            batch = queue.candidate()
            if batch is None:
                continue
            due = self._due_at(queue, batch, node)
            if due > now:
                wake_at = min(wake_at, due)
            else:
                ready.append(leader)
                done.add(leader)
                node.became_ready(now)
        return Outlook(tuple(ready), wake_at, is_leaderless)

    def _due_at(
        self, queue: PartitionQueue, batch: ProduceBatch, node: NodeState
    ) -> float:
        if batch.attempts or batch.is_sealed or self.is_urgent:
            return batch.retry_at
        if len(queue.waiting) > 1 or not node.in_flight:
            return 0.0
        return batch.created + self._limits.linger

    def drain(self, node_id: int, now: float) -> list[ProduceBatch]:
        """Take at most one batch of each partition of a node, for one request.

        The partitions take turns in being first, so that none is starved when the
        request's size limit is reached. The first batch goes whatever its size.
        """
        node = self.node(node_id)
        queues = [q for q in self._active.values() if q.leader == node_id]
        if len(queues) > 1:
            start = node.turn % len(queues)
            queues = queues[start:] + queues[:start]
        taken: list[ProduceBatch] = []
        size = 0
        for queue in queues:
            if not queue.waiting:
                continue
            batch = queue.candidate()
            if batch is None or batch.retry_at > now:
                continue
            size += batch.builder.size_bytes
            if taken and size > self._limits.max_request_size:
                break
            if batch.is_leased:
                self._end_lease(batch)
            queue.take(batch)
            topic = self._topics[batch.partition.topic]
            if topic.used_at < now:  # lanes do not tell when
                topic.used_at = now
            taken.append(batch)
        if taken:
            node.sent(now, len(taken))
        return taken

    # What became of what was sent.

    def acknowledged(
        self, batch: ProduceBatch, base_offset: int, log_append_time: int
    ) -> None:
        """The broker has the batch."""
        queue = self._landed(batch)
        if queue.sequence is not None:
            queue.sequence.acked(batch)
        if not batch.is_expired:
            batch.receipt.acknowledge(base_offset, log_append_time)
        self._return_charge(queue, batch)

    def failed(self, batch: ProduceBatch, error: Exception) -> None:
        """The batch was on the wire and is given up."""
        queue = self._landed(batch)
        if queue.sequence is not None:
            queue.sequence.failed(batch)
        if not batch.is_expired:
            batch.receipt.fail(error)
        self._return_charge(queue, batch)

    def refused(self, batch: ProduceBatch, cause: Exception, retry_at: float) -> None:
        """The broker did not append the batch this time; send it again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.refused(batch)

    def lost(self, batch: ProduceBatch, cause: Exception, retry_at: float) -> None:
        """It is not known whether the batch was appended; send it again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.lost(batch)

    def out_of_order(
        self, batch: ProduceBatch, cause: Exception, retry_at: float
    ) -> None:
        """The broker saw a gap in the numbers before the batch; send it again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.out_of_order(batch)

    def forgotten(self, batch: ProduceBatch, cause: Exception, retry_at: float) -> None:
        """The broker has no trace of our numbers; number anew and send again."""
        queue = self._sent_again(batch, cause, retry_at)
        if queue is not None and queue.sequence is not None:
            queue.sequence.forgotten(batch)

    def _sent_again(
        self, batch: ProduceBatch, cause: Exception, retry_at: float
    ) -> PartitionQueue | None:
        if batch.is_expired:
            self.failed(batch, cause)
            return None
        queue = self._landed(batch)
        batch.cause = cause
        # A leader that came after the sending makes waiting pointless.
        is_moved = queue.leader >= 0 and batch.sent_to != (
            queue.leader,
            queue.leader_epoch,
        )
        batch.retry_at = 0.0 if is_moved else retry_at
        queue.put_back([batch])
        return queue

    def divide(self, batch: ProduceBatch, cause: Exception) -> None:
        """Send the batch, which has several records and is too large, as smaller ones.

        The parts take over its numbers. It does not count as an attempt. Batches of
        the topic that begin from now on are no larger than the parts.
        """
        builders: list[BatchBuilder] = []
        places: list[int] = []
        half = batch.builder.size_bytes // 2
        topic = self._topics[batch.partition.topic]
        topic.batch_size = min(topic.batch_size, half)
        for record in batch.builder.records():
            if not builders or builders[-1].try_append(*record) < 0:
                builders.append(self._new_builder(half))
                builders[-1].try_append(*record)
            places.append(len(builders) - 1)
        self._replace(batch, builders, places, {}, cause)

    def without(
        self,
        batch: ProduceBatch,
        bad: Mapping[int, Exception],
        cause: Exception,
    ) -> None:
        """Fail the listed records alone, and send the others again as a batch.

        Args:
            batch: a batch that was refused as a whole because of some records.
            bad: the error of each record that is at fault, by index.
            cause: the error of the batch.
        """
        builders: list[BatchBuilder] = []
        places: list[int] = []
        for index, record in enumerate(batch.builder.records()):
            if index in bad:
                places.append(-1)
                continue
            if not builders:
                builders.append(self._new_builder(2**31 - 1))
            builders[0].try_append(*record)
            places.append(0)
        self._replace(batch, builders, places, bad, cause)

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
        queue = self._landed(batch)
        parts = self._parts_of(batch, builders, cause)
        moved: list[tuple[Receipt, int]] = []
        next_index = [0] * len(parts)
        for index, place in enumerate(places):
            if place < 0:
                receipt = self._new_receipt(*batch.partition, 1)
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
            receipt = self._new_receipt(*batch.partition, builder.count)
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
            # The parts share the charge, so that dividing never takes new room.
            part.charged = min(batch.charged, builder.size_bytes)
            batch.charged -= part.charged
            parts.append(part)
        return parts

    def _landed(self, batch: ProduceBatch) -> PartitionQueue:
        queue = self._active[batch.partition]
        queue.on_wire.remove(batch)
        batch.is_on_wire = False
        self.has_news = True
        return queue

    def _return_charge(self, queue: PartitionQueue, batch: ProduceBatch) -> None:
        self._used -= batch.charged
        batch.charged = 0
        if not queue.waiting and not queue.on_wire:
            self._active.pop(queue.partition, None)

    # Time.

    def _next_expiry(self) -> float:
        earliest = closes_at = _FOREVER
        for queue in self._active.values():
            if queue.waiting and queue.waiting[0].created < earliest:
                earliest = queue.waiting[0].created
            if queue.waiting and not queue.waiting[-1].is_sealed:
                closes_at = min(closes_at, queue.waiting[-1].created + self._open_for)
            for batch in queue.on_wire:
                if not batch.is_expired:
                    if batch.created < earliest:
                        earliest = batch.created
                    break
        earliest = min(earliest + self._limits.delivery_timeout, closes_at)
        for topic in self._topics.values():
            if topic.undesignated:
                created = topic.undesignated[0].created
                earliest = min(earliest, created + self._limits.max_block)
        return earliest

    def expire(self, now: float) -> list[Receipt]:
        """Fail what has waited too long: for its metadata or for being delivered.

        A batch that has been open for a good while takes no more records, or the last
        of them would fail with the first.

        Returns:
            The receipts that failed by this.
        """
        expired = self._expire_undesignated(now)
        # The same sum as for expires_at: else rounding could leave the sender awake for
        # something that does not happen yet.
        patience = self._limits.delivery_timeout
        for queue in list(self._active.values()):
            while queue.waiting and queue.waiting[0].created + patience <= now:
                batch = queue.waiting[0]
                self._give_up(queue, batch, not_acknowledged(batch, self._limits))
                expired.append(batch.receipt)
            if queue.waiting and queue.waiting[-1].created + self._open_for <= now:
                self._end_lease(queue.waiting[-1])
                queue.waiting[-1].is_sealed = True
            for batch in queue.on_wire:
                if batch.created + patience <= now and not batch.is_expired:
                    self._expire(queue, batch, not_acknowledged(batch, self._limits))
                    expired.append(batch.receipt)
        self.expires_at = self._next_expiry()
        return expired

    def _expire_undesignated(self, now: float) -> list[Receipt]:
        expired = []
        patience = self._limits.max_block
        for topic in self._topics.values():
            waiting = topic.undesignated
            while waiting and waiting[0].created + patience <= now:
                entry = waiting.popleft()
                self._used -= entry.charged
                count = topic.partition_count
                entry.receipt.fail(unknown_topic(entry.receipt, count, self._limits))
                expired.append(entry.receipt)
        return expired

    def _give_up(
        self, queue: PartitionQueue, batch: ProduceBatch, error: Exception
    ) -> None:
        self._end_lease(batch)
        queue.give_up(batch)
        self.has_news = True
        batch.receipt.fail(error)
        self._return_charge(queue, batch)

    def _expire(
        self, queue: PartitionQueue, batch: ProduceBatch, error: Exception
    ) -> None:
        batch.is_expired = True
        if queue.sequence is not None:
            queue.sequence.expired(batch)
        batch.receipt.fail(error)

    # The end, and looking in.

    def seal(self) -> list[Receipt]:
        """Let every batch leave as soon as it can; return what is not settled yet."""
        receipts = []
        for queue in self._active.values():
            for batch in queue.waiting:
                self._end_lease(batch)
                batch.is_sealed = True
                receipts.append(batch.receipt)
            receipts += [b.receipt for b in queue.on_wire if not b.is_expired]
        for topic in self._topics.values():
            receipts += [entry.receipt for entry in topic.undesignated]
        self.has_news = True
        return receipts

    def fail_all(
        self, error: Callable[[ProduceBatch | None], Exception]
    ) -> list[Receipt]:
        """Give up everything.

        Args:
            error: makes the error of a batch, or with None that of a record which
                had no batch yet.

        Returns:
            The receipts that failed by this.
        """
        receipts = self.seal()
        for topic in self._topics.values():
            if topic.undesignated:
                self._fail_undesignated(topic, error(None))
        for queue in list(self._active.values()):
            for batch in list(queue.waiting):
                self._give_up(queue, batch, error(batch))
            for batch in queue.on_wire:
                if not batch.is_expired:
                    self._expire(queue, batch, error(batch))
        return receipts

    def note_cause(self, node_id: int | None, cause: Exception) -> None:
        """Remember why nothing can be sent to a node, or with None to any."""
        for queue in self._active.values():
            if node_id is None or queue.leader == node_id:
                for batch in queue.waiting:
                    batch.cause = cause

    @property
    def is_empty(self) -> bool:
        """Whether no record waits and none is on the wire."""
        return not self._active and not (self._unknown and self.unknown_topics())

    def statistics(self) -> AccumulatorStatistics:
        """Return a snapshot."""
        queues = self._active.values()
        return AccumulatorStatistics(
            topics=len(self._topics),
            used_bytes=self._used - sum(map(self._unused, self._leased)),
            waiting_batches=sum(len(queue.waiting) for queue in queues),
            batches_on_wire=sum(len(queue.on_wire) for queue in queues),
            undesignated_records=sum(
                len(topic.undesignated) for topic in self._topics.values()
            ),
        )
