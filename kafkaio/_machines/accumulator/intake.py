"""Taking records in: room, partition, batch.

Theory of operation. Most records go the short way: into the open batch of their
partition, through a lane that was granted for it (see `kafkaio._records._append`),
without a call of the accumulator. So a batch with a lane is *leased*: it is charged
with the room that it may use in advance: all up to its target size, or its share where
there are so many partitions that such promises would fill the buffer. What it did not
use is returned when the lease ends. A lease ends before anything else is done with the
batch. Every other record, above all the first of each batch, comes here.

While somebody waits for room no batch is leased, so that those who wait come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from kafkaio._machines.accumulator.batch import PlainRecord, ProduceBatch, Receipt
from kafkaio._machines.accumulator.limits import Limits, too_large
from kafkaio._machines.accumulator.node import NodeState
from kafkaio._machines.accumulator.queue import PartitionQueue
from kafkaio._machines.accumulator.topic import Chooser, TopicQueues, Undesignated
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.partitioner import STICKY_BYTES, StickyPartition
from kafkaio._machines.reactions import reaction
from kafkaio._machines.sequence import PartitionSequence, ProducerIdentity
from kafkaio._records._impl import OpenBatches
from kafkaio._records.batch import BatchBuilder
from kafkaio.errors import BufferFull
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._records._receipts import Wait

__all__ = ["Intake"]


#: Bytes under which a lease is not worth its while.
_LEAST_LEASE = 1_024
_FOREVER = float("inf")
#: What a batch can never reach.
_NO_LIMIT = 2**31 - 1


def _no_clock() -> int:
    return 0


class Intake:
    """Takes records in and gives each its batch.

    Args:
        limits: sizes and times.
        chooser: decides about partitions.
        identity: the producer's identity, None without idempotence.
        new_builder: makes the builder of a batch of the given target size.
        on_lost: told of a receipt that failed and whose last handle went unseen.

    Attributes:
        has_news: set when something happened that the sender should look at.
        has_new_topic: set when metadata of another topic is needed; the sender
            clears it.
        is_urgent: whether every batch should leave now: somebody waits for room.
        is_lone: whether the next record leaves before another can join it, so that
            its batch needs no lease; set and ended by the sender.
        expires_at: before this time `expire` has nothing to do. It is not put off when
            what would have expired lands, which would cost a look at every batch.
        lanes: where records go in past the accumulator; set before the first one.
        wait: makes the iterator that awaits a delivery; likewise.
    """

    def __init__(
        self,
        limits: Limits,
        chooser: Chooser,
        identity: ProducerIdentity | None,
        new_builder: Callable[[int], BatchBuilder],
        on_lost: Callable[[Receipt, int], None] | None = None,
    ) -> None:
        self._limits = limits
        self._chooser = chooser
        self._identity = identity
        self._new_builder = new_builder
        self._on_lost = on_lost
        self._largest = min(limits.max_request_size, limits.buffer_memory)
        self._open_for = limits.open_for
        self._topics: dict[str, TopicQueues] = {}
        # Invariant: all topics with undesignated records; some may have none any more.
        # The sender asks with every answer, and there may be thousands of topics.
        self._unknown: dict[str, TopicQueues] = {}
        # Queues with a batch that waits or is on the wire, in order of appearance.
        self._active: dict[TopicPartition, PartitionQueue] = {}
        self._nodes: dict[int, NodeState] = {}
        self._view = ClusterView()
        # Invariant: the charges of all batches and undesignated records, and what
        # was promised by reserve(), add up to it; at most limits.buffer_memory.
        self._used = 0
        self.has_news = False
        self.has_new_topic = False
        self.is_urgent = False
        self.is_lone = False
        self.expires_at = _FOREVER
        self.open_batches = OpenBatches(_no_clock, self._largest)
        self.wait: Wait | None = None
        # In the order of their leases; a dict, so that ending one is one step.
        self._leased: dict[ProduceBatch, None] = {}
        self._is_leasing = True

    # Taking records in.

    def looked(self) -> None:
        """Note that the sender looks now."""
        self.has_news = False
        self.open_batches.taken = 0

    def size_of(self, record: PlainRecord) -> int:
        """Return the most that a record can take up, in bytes.

        Raises:
            RecordTooLarge: it can never be sent under the limits in force.
        """
        _, key, value, headers = record
        size = BatchBuilder.size_of(key, value, headers)
        if size > self._largest:
            raise too_large(size, self._limits)
        return size

    def reserve(self, size: int) -> bool:
        """Set ``size`` bytes aside; False if there is no room."""
        if self._used + size > self._limits.buffer_memory:
            self.end_leases()
            if self._used + size > self._limits.buffer_memory:
                return False
        self._used += size
        return True

    def release(self, size: int) -> None:
        """Return bytes that were set aside."""
        self._used -= size

    def append(
        self, topic: str, partition: int | None, record: PlainRecord, now: float
    ) -> Receipt:
        """Take a record in; it is the last one that the returned receipt counts.

        Raises:
            RecordTooLarge: it can never be sent under the limits in force.
            BufferFull: there is no room now.
            ValueError: a custom partitioner returned no partition of the topic.
        """
        size = self.size_of(record)
        if not self.reserve(size):
            raise BufferFull(
                f"{self._used} of buffer_memory={self._limits.buffer_memory} bytes "
                f"are taken, and the record needs up to {size}"
            )
        return self.append_reserved(topic, partition, record, now, size)

    def append_reserved(
        self,
        topic: str,
        partition: int | None,
        record: PlainRecord,
        now: float,
        size: int,
    ) -> Receipt:
        """Take a record in for which ``size`` bytes were set aside.

        Raises:
            ValueError: a custom partitioner returned no partition of the topic.
        """
        queues = self._topics.get(topic) or self._begin_topic(topic)
        queues.used_at = now
        self._used -= size
        if queues.partition_count > (partition or 0):
            return self._designate(queues, partition, record, now, size)
        self._used += size
        self.open_batches.taken += size
        self.has_new_topic = True
        receipt = self._new_receipt(topic, -1 if partition is None else partition, 1)
        queues.undesignated.append(Undesignated(receipt, partition, record, now, size))
        self._unknown[topic] = queues
        self.expires_at = min(self.expires_at, now + self._limits.max_block)
        self.has_news = True
        return receipt

    def _begin_topic(self, name: str) -> TopicQueues:
        batch_size = self._limits.batch_size
        sticky = StickyPartition(min(batch_size, STICKY_BYTES))
        queues = TopicQueues(name, sticky, batch_size)
        queues.learn(self._view)
        self.has_new_topic = True
        self._topics[name] = queues
        return queues

    def _new_receipt(self, topic: str, partition: int, count: int = 0) -> Receipt:
        return Receipt(
            topic, partition, count=count, on_lost=self._on_lost, wait=self.wait
        )

    def _designate(
        self,
        topic: TopicQueues,
        partition: int | None,
        record: PlainRecord,
        created: float,
        size: int,
    ) -> Receipt:
        if partition is None:
            partition = self._chooser.choose(topic, record)
        if partition >= 0:
            return self._put(topic, partition, record, created)[0]
        return self._designate_sticky(topic, record, created, size)

    def _designate_sticky(
        self, topic: TopicQueues, record: PlainRecord, created: float, size: int
    ) -> Receipt:
        sticky = topic.sticky
        sticky.left -= self.open_batches.unstick(topic.name)
        put = None
        queue = topic.queues.get(sticky.partition)
        if queue is not None and sticky.left > 0:
            # First, for only what does not fit tells that the batch is full.
            put = self._add(topic, queue, record)
        if put is None:
            if sticky.is_due(size):
                sticky.switch(self._chooser.draw(topic, self._slow_nodes(created)))
            put = self._put(topic, sticky.partition, record, created)
        receipt, added = put
        sticky.left -= added
        self.open_batches.stick(topic.name, sticky.partition, sticky.left)
        return receipt

    def _slow_nodes(self, now: float) -> Collection[int]:
        patience = self._limits.availability_timeout
        if not patience:
            return ()
        return [
            node
            for node, state in self._nodes.items()
            if state.is_stalled(now, patience)
        ]

    def _begin_queue(self, topic: TopicQueues, partition: int) -> PartitionQueue:
        tp = TopicPartition(topic.name, partition)
        sequence = None
        if self._identity is not None:
            sequence = PartitionSequence[ProduceBatch](self._identity)
        queue = PartitionQueue(tp, sequence)
        topic.queues[partition] = queue
        view = self._view.partition(tp)
        if view is not None:
            queue.led_by(view.leader, view.leader_epoch)
        return queue

    def _put(
        self, topic: TopicQueues, partition: int, record: PlainRecord, created: float
    ) -> tuple[Receipt, int]:
        """Append a record; its receipt, and the bytes that it took."""
        queue = topic.queues.get(partition) or self._begin_queue(topic, partition)
        put = self._add(topic, queue, record)
        if put is not None:
            return put
        batch = self._begin_batch(topic, queue, record, created)
        queue.waiting.append(batch)
        self._active[queue.partition] = queue
        self.has_news = True
        return batch.receipt, self._charge(topic, batch, 0)

    def _add(
        self, topic: TopicQueues, queue: PartitionQueue, record: PlainRecord
    ) -> tuple[Receipt, int] | None:
        """Append a record to the open batch; None, and that is full, without room."""
        waiting = queue.waiting
        if not waiting or waiting[-1].is_sealed:
            return None
        batch = waiting[-1]
        self._withdraw(batch)
        builder = batch.builder
        before = builder.size_bytes
        if builder.try_append(*record) < 0:
            batch.is_sealed = True
            builder.promise(0)
            return None
        batch.receipt.count += 1
        return batch.receipt, self._charge(topic, batch, before)

    def _begin_batch(
        self,
        topic: TopicQueues,
        queue: PartitionQueue,
        record: PlainRecord,
        created: float,
    ) -> ProduceBatch:
        builder = self._new_builder(topic.batch_size)
        builder.try_append(*record)
        receipt = self._new_receipt(*queue.partition, 1)
        closes_at = created + self._open_for
        if closes_at < self.expires_at:
            self.expires_at = closes_at
        rank = queue.new_rank()
        return ProduceBatch(queue.partition, rank, builder, receipt, created)

    def _charge(self, topic: TopicQueues, batch: ProduceBatch, before: int) -> int:
        added = batch.builder.size_bytes - before
        batch.charged += added
        self._used += added
        self.open_batches.taken += added
        self._lease(topic, batch)
        return added

    # Leases.

    def _lease(self, topic: TopicQueues, batch: ProduceBatch) -> None:
        room = self._room_to_lease(topic, batch)
        if room <= 0:
            batch.builder.promise(0)
            return
        is_whole = room == self._limits.batch_size - batch.charged
        limit = _NO_LIMIT if is_whole else batch.charged + room
        batch.builder.promise(limit)
        batch.is_leased = True
        batch.charged += room
        self._used += room
        self._leased[batch] = None
        self.open_batches.open(
            *batch.partition,
            topic.partition_count,
            (batch.builder, batch.receipt),
            limit,
        )

    def _room_to_lease(self, topic: TopicQueues, batch: ProduceBatch) -> int:
        if self.is_lone or not self._is_leasing or self._chooser.is_custom:
            return 0
        room = self._limits.batch_size - batch.charged
        # With hundreds of partitions the buffer could not hold a whole batch for each.
        others = max(topic.partition_count, len(self._active))
        share = (self._limits.buffer_memory - self._used) // others
        if share >= room:
            return room
        return share if share >= _LEAST_LEASE else 0

    def _end_lease(self, batch: ProduceBatch) -> None:
        if batch.is_leased:
            self._withdraw(batch)
            # What the batch is charged with no longer covers more than its records.
            batch.builder.promise(0)

    def _withdraw(self, batch: ProduceBatch) -> None:
        if not batch.is_leased:
            return
        self.open_batches.close(*batch.partition)
        batch.is_leased = False
        del self._leased[batch]
        unused = self._unused(batch)
        batch.charged -= unused
        self._used -= unused

    @staticmethod
    def _unused(batch: ProduceBatch) -> int:
        return batch.charged - batch.builder.size_bytes

    def end_leases(self) -> None:
        """Let every record come here, until batches are leased again."""
        for batch in list(self._leased):
            self._end_lease(batch)

    def allow_leases(self, *, allowed: bool) -> None:
        """Say whether batches may be leased."""
        self._is_leasing = allowed
        if not allowed:
            self.end_leases()

    def node(self, node_id: int) -> NodeState:
        """Return what is known of a node."""
        state = self._nodes.get(node_id)
        if state is None:
            state = self._nodes[node_id] = NodeState()
        return state

    # What the metadata says.

    def topics_in_use(self, since: float) -> frozenset[str]:
        """The topics that records wait for, or were appended to after ``since``."""
        return frozenset(
            name
            for name, topic in self._topics.items()
            if topic.used_at > since or not topic.is_idle
        )

    def unknown_topics(self) -> list[str]:
        """Topics for whose metadata records wait."""
        self._unknown = {
            name: topic for name, topic in self._unknown.items() if topic.undesignated
        }
        return list(self._unknown)

    def learn(self, view: ClusterView) -> None:
        """Take over new metadata: leaders move, waiting records get partitions."""
        self._view = view
        self.has_news = True
        # With other partitions, keys go elsewhere.
        self.end_leases()
        for topic in self._topics.values():
            topic.sticky.left -= self.open_batches.unstick(topic.name)
        self.open_batches.clear()
        for topic in self._topics.values():
            topic.learn(view)
            if topic.undesignated:
                self._designate_waiting(topic)

    def _designate_waiting(self, topic: TopicQueues) -> None:
        code = self._view.topic_error(topic.name)
        if code and not reaction(ApiKey.METADATA, code).retry:
            error = broker_error(code, f"topic {topic.name!r} cannot be written")
            self._fail_undesignated(topic, error)
            return
        # Records for a partition that does not exist (yet) stay, without holding up
        # the others; order is a promise within a partition only.
        waiting, still = topic.undesignated, topic.undesignated.__class__()
        topic.undesignated = still
        for entry in waiting:
            if topic.partition_count <= (entry.partition or 0):
                still.append(entry)
                continue
            self._used -= entry.charged
            try:
                receipt = self._designate(
                    topic,
                    entry.partition,
                    entry.record,
                    entry.created,
                    entry.charged,
                )
            except Exception as error:  # noqa: BLE001 - the user's partitioner
                entry.receipt.fail(error)
            else:
                entry.receipt.move([(receipt, receipt.count - 1)])

    def _fail_undesignated(self, topic: TopicQueues, error: Exception) -> None:
        waiting, topic.undesignated = topic.undesignated, topic.undesignated.__class__()
        for entry in waiting:
            self._used -= entry.charged
            entry.receipt.fail(error)
