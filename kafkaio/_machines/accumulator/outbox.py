"""The outbox: which batches go to which broker, and when.

The sender asks for the `Outbox.outlook`: which brokers have something to send now, and
until when it may sleep. It then drains a broker: one batch of each of its partitions,
for one request, whose size depends on how much the connection carries
(`NodeState`).

A batch may leave when it is full (or another one waits behind it), when it has
lingered, when it was sent before, while a call flushes or waits for buffer memory, and
when no request to its leader is in flight, since waiting would then gain nothing. To a
distant broker, requests that are not full follow each other at intervals. When
one batch of a broker may leave, the other batches of that broker are sent with it, as
in Java's client.
"""

from __future__ import annotations

from kafkaio._machines.accumulator.availability import Availability, NodeState
from kafkaio._machines.accumulator.budget import Budget
from kafkaio._machines.accumulator.gate import Gate
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import Backlog, PartitionQueue, ProduceBatch
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import TopicPartition

_FOREVER = float("inf")
#: Requests in flight to a distant broker from which on the next keeps its distance.
_UNSPACED = 2


class Outlook(NamedTuple):
    """The brokers to send to now, and when to check again.

    Attributes:
        nodes: brokers that have something to send and can take a request.
        wake_at: when something changes without an event; infinity if nothing will.
        is_leaderless: whether batches wait for a partition to get a leader.
    """

    nodes: tuple[int, ...]
    wake_at: float
    is_leaderless: bool


class Outbox:
    """Chooses what is sent.

    Args:
        limits: sizes and times.
        backlog: all records held.
        gate: decides which batch of a partition may be sent.
        budget: ends the lease of a batch that is sent.
        availability: has the states of the brokers.

    Attributes:
        is_urgent: whether every batch should leave now, because a call waits for buffer
            memory; set by the sender.
    """

    def __init__(
        self,
        limits: Limits,
        backlog: Backlog,
        gate: Gate,
        budget: Budget,
        availability: Availability,
    ) -> None:
        self._limits = limits
        self._backlog = backlog
        self._gate = gate
        self._budget = budget
        self._availability = availability
        self.is_urgent = False

    def leaders(self) -> set[int]:
        """Return the brokers for which batches wait, sendable or not."""
        queues = self._backlog.active.values()
        return {queue.leader for queue in queues if queue.waiting and queue.leader >= 0}

    def outlook(self, now: float) -> Outlook:
        """Return which brokers have something to send now, and when to check again."""
        ready: list[int] = []
        # Brokers whose other partitions need no check: a ready one is drained of all
        # its batches, and one that cannot take a request is checked when it answers.
        done: set[int] = set()
        is_leaderless = False
        backlog, sendable = self._backlog, self._gate.sendable
        if not backlog.active and backlog.is_empty:
            backlog.expires_at = _FOREVER
        availability = self._availability
        wake_at = backlog.expires_at
        if availability.is_watching:
            wake_at = min(wake_at, availability.check(now))
        nodes, most = availability.nodes, self._limits.max_in_flight
        for queue in backlog.active.values():
            leader = queue.leader
            if not queue.waiting or leader in done:
                continue
            if leader < 0:
                is_leaderless |= sendable(queue) is not None
                continue
            node = nodes.get(leader) or availability.node(leader)
            # A broker that fails gets one request at a time, which shows under which
            # request its connection breaks.
            if node.in_flight >= most or (
                node.in_flight and leader in availability.failing
            ):
                done.add(leader)
                continue
            batch = sendable(queue)
            if batch is None:
                continue
            due = self._due_at(queue, batch, node)
            if due <= now < node.next_at and self._is_early(leader, node, now):
                done.add(leader)
                due = node.next_at
            if due > now:
                wake_at = min(wake_at, due)
            else:
                ready.append(leader)
                done.add(leader)
                node.ready_since = min(node.ready_since, now)
        return Outlook(tuple(ready), wake_at, is_leaderless)

    def _due_at(
        self, queue: PartitionQueue, batch: ProduceBatch, node: NodeState
    ) -> float:
        if batch.attempts or batch.is_sealed or self.is_urgent:
            return batch.retry_at
        # Lingering gains nothing where another batch waits behind this one, or where
        # the leader has nothing to do.
        if len(queue.waiting) > 1 or not node.in_flight:
            return 0.0
        return batch.created + self._limits.linger

    def _is_early(self, node_id: int, node: NodeState, now: float) -> bool:
        """Whether a request to a distant broker should wait for more batches."""
        # A second one does not wait: few records are to arrive in one round trip.
        if node.in_flight < _UNSPACED:
            return False
        size = 0
        for queue in self._backlog.active.values():
            if queue.leader == node_id and queue.waiting:
                batch = self._gate.sendable(queue)
                if batch is not None and batch.retry_at <= now:
                    size += batch.builder.size_bytes
        return size < min(node.request_size, node.largest) - self._limits.batch_size

    def lone_queue(self) -> PartitionQueue | None:
        """Return the queue of the only batch there is, if it may be sent at once.

        It was never sent, is not leased, and nothing is in flight to its broker. None
        in every other case: `outlook` and `drain` decide these.
        """
        availability, active = self._availability, self._backlog.active
        if len(active) != 1 or availability.has_trouble or availability.is_watching:
            return None
        (queue,) = active.values()
        node = availability.nodes.get(queue.leader)
        if len(queue.waiting) != 1 or queue.on_wire or node is None or node.in_flight:
            return None
        batch = self._gate.sendable(queue)
        is_new = batch is not None and not batch.attempts and not batch.is_leased
        return queue if is_new else None

    def take(self, queue: PartitionQueue, now: float) -> ProduceBatch:
        """Take the batch of a queue that `lone_queue` returned just now."""
        batch = queue.waiting[0]
        queue.take(batch)
        node = self._availability.nodes[queue.leader]
        node.sent(now, 1, batch.builder.size_bytes)
        return batch

    def drain(self, node_id: int, now: float) -> list[ProduceBatch]:
        """Take at most one batch of each partition of a broker, for one request.

        The partitions take turns in being first, so that none is starved when the
        request's size limit is reached. The first batch is taken whatever its size.
        """
        availability = self._availability
        node = availability.nodes.get(node_id) or availability.node(node_id)
        sendable = self._gate.sendable
        queues = [q for q in self._backlog.active.values() if q.leader == node_id]
        if len(queues) > 1:
            start = node.first % len(queues)
            queues = queues[start:] + queues[:start]
        taken: list[ProduceBatch] = []
        if node.largest != _FOREVER:
            node.lift_limit(now)
        size, largest = 0, min(node.request_size, node.largest)
        for queue in queues:
            if not queue.waiting:
                continue
            batch = sendable(queue)
            if batch is None or batch.retry_at > now:
                continue
            added = batch.builder.size_bytes
            if taken and size + added > largest:
                break
            size += added
            if batch.is_leased:
                self._budget.end_lease(batch)
            queue.take(batch)
            topic = self._backlog.topics[batch.partition.topic]
            if topic.used_at < now:  # records of a leased batch do not set it
                topic.used_at = now
            taken.append(batch)
        if taken:
            node.sent(now, len(taken), size)
        return taken

    def partitions_to_add(self) -> list[TopicPartition]:
        """Return the partitions whose records wait until the transaction has them."""
        if self._gate.admitted is None:
            return []
        queues = self._backlog.active.values()
        return [queue.partition for queue in queues if self._gate.must_wait(queue)]

    def note_cause(self, node_id: int | None, cause: Exception) -> None:
        """Remember why nothing can be sent to a broker; with None, to any broker."""
        for queue in self._backlog.active.values():
            if node_id is None or queue.leader == node_id:
                for batch in queue.waiting:
                    batch.cause = cause
