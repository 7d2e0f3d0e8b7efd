"""Placement: which partition and which batch a record goes to.

The partition is the one that the record names, else the one of the user's partitioner,
else that of its key, else the sticky partition of the topic (KIP-480, KIP-794). The
record is appended to the open batch of the partition, or begins a new one. A record
whose topic's metadata is not known yet waits for it, *undesignated*.

Most records come here only to begin a batch; the next ones go into it past the
accumulator (see `kafkaio._machines.accumulator.budget`). Their bytes in the sticky
partition are subtracted from its share before a record is placed there.

While rows of a table are taken in, a partition that has its turn stands in for the
sticky one (`Placement.turn`). If it becomes unusable meanwhile, the rest of its run is
placed like records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kafkaio._config import Partitioner
from kafkaio._machines.accumulator.availability import Availability
from kafkaio._machines.accumulator.budget import Budget
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import (
    Backlog,
    BatchRecords,
    PartitionQueue,
    PlainRecord,
    ProduceBatch,
    Receipt,
    TopicQueues,
    Undesignated,
)
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.partitioner import (
    STICKY_BYTES,
    StickyPartition,
    draw,
    key_partition,
    runs_of,
)
from kafkaio._machines.reactions import reaction
from kafkaio._machines.sequence import PartitionSequence, ProducerIdentity
from kafkaio._records.builder import BatchBuilder
from kafkaio._records.compression import Compression
from kafkaio.errors import (
    ArgumentValueError,
    KafkaError,
    RequestTimeout,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition


class Chooser:
    """Chooses partitions for records that name none.

    Args:
        dice: returns a random number in [0, 1) each time it is called.
        custom: the user's partitioner.
        ignore_keys: treat records with keys like those without.
        adaptive: give fewer records to partitions with longer queues.
        rack: prefer partitions with a leader there for records without a key
            (KIP-1123); None for no preference.

    Attributes:
        rack: the same.
    """

    __slots__ = ("_adaptive", "_custom", "_dice", "_ignore_keys", "rack")

    def __init__(
        self,
        dice: Callable[[], float],
        *,
        custom: Partitioner | None = None,
        ignore_keys: bool = False,
        adaptive: bool = True,
        rack: str | None = None,
    ) -> None:
        self._dice = dice
        self._custom = custom
        self._ignore_keys = ignore_keys
        self._adaptive = adaptive
        self.rack: str | None = rack

    @property
    def is_custom(self) -> bool:
        """Whether the user's partitioner must be called with every record."""
        return self._custom is not None

    def choose(self, topic: TopicQueues, record: PlainRecord) -> int:
        """Return the partition of a record that names none; -1 for the sticky one.

        Args:
            topic: the topic, whose partition count is known.
            record: the record.

        Raises:
            ArgumentValueError: the custom partitioner did not return a partition of
                the topic.
            KafkaError: it raised what is not an Exception, such as a CancelledError.
            Exception: it raised it.
        """
        _, key, value, _ = record
        if self._custom is not None:
            return self._call(self._custom, topic, key, value)
        if key is not None and not self._ignore_keys:
            return key_partition(key, topic.partition_count)
        return -1

    def _call(
        self,
        custom: Partitioner,
        topic: TopicQueues,
        key: bytes | None,
        value: bytes | None,
    ) -> int:
        count = topic.partition_count
        try:
            chosen = custom(topic.name, key, value, count)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A future that it asks may have been cancelled. Raised on, that would look
            # like the end of the caller's task, or of the one that fetched metadata.
            raise KafkaError(f"the partitioner raised {error!r}") from error
        if type(chosen) is not int or not 0 <= chosen < count:
            raise ArgumentValueError(
                f"the partitioner returned {chosen!r} for topic {topic.name!r}, "
                f"which has partitions 0 to {count - 1}"
            )
        return chosen

    def draw(
        self,
        topic: TopicQueues,
        partitions: Sequence[int],
        active: Collection[PartitionQueue],
    ) -> int:
        """Draw the next sticky partition of a topic.

        Args:
            topic: the topic, whose partition count is known.
            partitions: those to choose from, ascending, not empty.
            active: the queues of all topics with a batch that waits.
        """
        loads: dict[int, int] = {}
        # Nothing may ever go to the other racks, so their queues need not be there.
        is_known = len(topic.queues) >= topic.partition_count or (
            topic.near and not topic.near_unused
        )
        if self._adaptive and is_known:
            share, name = topic.sticky.share, topic.name
            # Both contain every queue of the topic with a batch that waits: the shorter
            # one is walked. `active` is long with many topics, `topic.queues` with many
            # partitions that were used once.
            queues: Collection[PartitionQueue] = topic.queues.values()
            loads = {
                queue.partition.partition: queue.load(share)
                for queue in (queues if len(queues) < len(active) else active)
                if queue.waiting and queue.partition.topic == name
            }
        return draw(partitions, loads, self._dice())

    def next_turn(
        self, topic: TopicQueues, partitions: Sequence[int], memory: int
    ) -> int:
        """Return the partition of a topic whose turn is next.

        A partition that holds more than its even part of the memory is passed over, if
        another one does not: its broker is slower than the others.

        Args:
            topic: the topic, whose partition count is known.
            partitions: those to choose from, ascending, not empty.
            memory: bytes that may wait for all of them together.
        """
        order = topic.turns.order(partitions, self._dice())
        if not self._adaptive:
            return next(order)
        most, queues = memory // len(partitions), topic.queues
        for number in order:
            if number not in queues or queues[number].waiting_bytes <= most:
                return number
        return partitions[0]


class Placement:
    """Takes records in and places each in a batch.

    Args:
        limits: sizes and times.
        backlog: all records held.
        budget: charges batches and leases them.
        chooser: chooses partitions.
        identity: the producer's identity, None without idempotence.
        new_builder: makes the builder of a batch of the given target size.
        availability: says which partitions records without a key avoid.
        new_receipt: makes the receipt of a topic, partition and ``count`` of records.

    Attributes:
        on_failed: called with the error of records that cannot get a partition, after
            the other records got theirs.
        on_missing: called once with a partition that records wait for and that the
            topic does not have; again only if it existed meanwhile.
        why_undescribed: returns why metadata has not come yet, for error messages.
    """

    def __init__(  # noqa: PLR0913 - the parts that it needs
        self,
        limits: Limits,
        backlog: Backlog,
        budget: Budget,
        chooser: Chooser,
        identity: ProducerIdentity | None,
        new_builder: Callable[[int], BatchBuilder],
        availability: Availability,
        new_receipt: Callable[..., Receipt],
    ) -> None:
        self._limits = limits
        self._open_for = limits.open_for
        self._backlog = backlog
        self._budget = budget
        self._open_batches = budget.open_batches
        self._chooser = chooser
        self._identity = identity
        self._new_builder = new_builder
        self._availability = availability
        self._new_receipt = new_receipt
        self._view = ClusterView()
        self.on_failed: Callable[[Exception], None] | None = None
        self.on_missing: Callable[[TopicPartition, Exception], object] | None = None
        self.why_undescribed: Callable[[], str] = str

    # Taking records in

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
            ArgumentValueError: a custom partitioner returned no partition of the topic.
        """
        backlog = self._backlog
        queues = backlog.topics.get(topic) or self._begin_topic(topic)
        queues.used_at = now
        if queues.partition_count > (partition or 0):
            self._budget.used -= size  # charged to the batch instead
            return self._designate(queues, partition, record, now, size)
        self._open_batches.taken += size
        number = -1 if partition is None else partition
        receipt = self._new_receipt(topic, number, count=1)
        backlog.hold(queues, Undesignated(receipt, partition, record, now, size))
        backlog.expires_at = min(backlog.expires_at, now + self._limits.max_block)
        return receipt

    def destination(
        self, topic: str, partition: int | None, record: PlainRecord
    ) -> tuple[int | None, TopicPartition | None]:
        """Find out where a record would go now.

        Returns:
            The partition to name when the record is taken in; None to choose it then.
            A partition that the user's partitioner chose is named, because that is
            called once for each record. And the place of the record: -1 for a partition
            that is not known yet, or for a sticky one that is stalled like all others;
            None if the sticky partitioner has a choice.

        Raises:
            ArgumentValueError: a custom partitioner returned no partition of the topic.
        """
        queues = self._backlog.topics.get(topic) or self._begin_topic(topic)
        if queues.partition_count <= (partition or 0):
            place = TopicPartition(topic, -1 if partition is None else partition)
            return partition, place
        if partition is not None:
            return partition, TopicPartition(topic, partition)
        chosen = self._chooser.choose(queues, record)
        if chosen >= 0:
            named = chosen if self._chooser.is_custom else None
            return named, TopicPartition(topic, chosen)
        if queues.partition_count == 1:
            return None, TopicPartition(topic, 0)
        is_stuck = self._availability.is_without_choice(queues)
        return None, TopicPartition(topic, -1) if is_stuck else None

    # Whole batches

    def new_builder(self, target_size: int) -> BatchBuilder:
        """Return a builder for a batch that `put_batches` takes."""
        return self._new_builder(target_size)

    def put_batches(
        self, tp: TopicPartition, batches: Sequence[BatchRecords], now: float
    ) -> list[Receipt]:
        """Take in batches of a partition for whose bytes memory was set aside.

        Each is sent as one: no record is added to it. Records that are taken in later
        are written after them, so the open batch of the partition is sealed.
        """
        backlog = self._backlog
        topic = backlog.topics.get(tp.topic) or self._begin_topic(tp.topic)
        topic.used_at = now
        queue = topic.queues.get(tp.partition) or self._begin_queue(topic, tp.partition)
        if queue.waiting:
            self._budget.end_lease(queue.waiting[-1])
            queue.waiting[-1].is_sealed = True
        place, ranks = queue.partition, queue.ranks
        receipts: list[Receipt] = []
        for records in batches:
            receipt = self._new_receipt(*place, count=records.count)
            receipts.append(receipt)
            batch = ProduceBatch(place, (next(ranks),), records, receipt, now)
            batch.is_sealed = True
            batch.charged = records.size_bytes
            self._open_batches.taken += batch.charged
            queue.waiting.append(batch)
            if records.compression is Compression.ZSTD:
                backlog.has_zstd = True
        expires_at = min(now + self._limits.delivery_timeout, backlog.deadline)
        backlog.expires_at = min(backlog.expires_at, expires_at)
        backlog.active[place] = queue
        backlog.has_news = True
        return receipts

    # Rows of a table

    def turn(self, name: str, size: int, runs: int = 0) -> int:
        """Let rows without a key go to the partition whose turn it is.

        That holds until the next call, or until `end_turn`.

        Args:
            name: the topic.
            size: bytes of all rows, about; or those of a run.
            runs: the number of runs; 0 to find out.

        Returns:
            Into how many runs the rows are divided.
        """
        topic = self._backlog.topics.get(name) or self._begin_topic(name)
        if topic.partition_count < 2 or self._chooser.is_custom:
            return 1
        turns, usable, sticky = (
            topic.turns,
            self._availability.usable(topic),
            topic.sticky,
        )
        if not runs:
            runs = runs_of(size, len(usable), 2 * sticky.share)
            size //= runs
        if runs > 1 or turns.is_due(size, usable):
            memory = self._limits.buffer_memory
            turns.begin(self._chooser.next_turn(topic, usable, memory))
        turns.take(size)
        sticky.left -= self._open_batches.unstick(name)
        sticky.lend(turns.partition)
        self._open_batches.stick(name, sticky.partition, sticky.left)
        return runs

    def end_turn(self, name: str) -> None:
        """Let records without a key go to the sticky partition again."""
        topic = self._backlog.topics.get(name)
        if topic is not None:
            topic.sticky.left -= self._open_batches.unstick(name)
            topic.sticky.take_back()

    def _begin_topic(self, name: str) -> TopicQueues:
        batch_size = self._limits.batch_size
        sticky = StickyPartition(min(batch_size, STICKY_BYTES), most=batch_size)
        queues = TopicQueues(name, sticky, batch_size)
        queues.learn(self._view, self._chooser.rack)
        self._backlog.has_new_topic = True
        self._backlog.topics[name] = queues
        return queues

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
        sticky.left -= self._open_batches.unstick(topic.name)
        put = None
        queue = topic.queues.get(sticky.partition)
        availability = self._availability
        if queue is not None and (
            queue.leader < 0
            or queue.is_refused
            or (availability.has_trouble and availability.is_avoided(queue))
        ):
            usable = availability.usable(topic)
            if sticky.partition not in usable:
                # The records in its batch stay there, to keep their order.
                sticky.switch(self._draw(topic, usable), created)
                queue = topic.queues.get(sticky.partition)
        if queue is not None and queue.waiting and sticky.left > 0:
            # Before the switch: only a record that does not fit shows that the batch
            # is full.
            put = self._add(topic, queue, record)
        if put is None:
            if sticky.is_due(size, created):
                availability.check(created)
                usable = availability.usable(topic)
                sticky.switch(self._draw(topic, usable), created)
            put = self._put(topic, sticky.partition, record, created)
        receipt, added = put
        sticky.left -= added
        self._open_batches.stick(topic.name, sticky.partition, sticky.left)
        return receipt

    def _draw(self, topic: TopicQueues, usable: Sequence[int]) -> int:
        return self._chooser.draw(topic, usable, self._backlog.active.values())

    def _begin_queue(self, topic: TopicQueues, partition: int) -> PartitionQueue:
        tp = TopicPartition(topic.name, partition)
        sequence = None
        if self._identity is not None:
            sequence = PartitionSequence[ProduceBatch](self._identity)
        queue = PartitionQueue(tp, sequence)
        self._backlog.queue_count += 1
        topic.queues[partition] = queue
        topic.near_unused.discard(partition)
        view = self._view.partition(tp)
        if view is not None:
            queue.led_by(view.leader, view.leader_epoch)
        return queue

    def _put(
        self, topic: TopicQueues, partition: int, record: PlainRecord, created: float
    ) -> tuple[Receipt, int]:
        """Append a record to the open batch, or begin one with it.

        Returns:
            Its receipt, and the bytes that it takes.
        """
        queue = topic.queues.get(partition) or self._begin_queue(topic, partition)
        if queue.waiting:
            put = self._add(topic, queue, record)
            if put is not None:
                return put
        builder = self._new_builder(topic.batch_size)
        builder.try_append(*record)
        receipt = self._new_receipt(*queue.partition, count=1)
        rank = (next(queue.ranks),)
        batch = ProduceBatch(queue.partition, rank, builder, receipt, created)
        backlog = self._backlog
        closes_at = min(created + self._open_for, backlog.deadline)
        if closes_at < backlog.expires_at:
            backlog.expires_at = closes_at
        queue.waiting.append(batch)
        # Before the charge: a lease is a share by the number of active partitions.
        backlog.active[queue.partition] = queue
        backlog.has_news = True
        return receipt, self._budget.charge(topic, batch, 0)

    def _add(
        self, topic: TopicQueues, queue: PartitionQueue, record: PlainRecord
    ) -> tuple[Receipt, int] | None:
        """Append a record to the last batch that waits; None if it takes none."""
        batch = queue.waiting[-1]
        if batch.is_sealed:
            return None
        # A lease is charged in advance: it ends before the batch grows in another way.
        self._budget.withdraw(batch)
        builder = batch.builder
        assert isinstance(builder, BatchBuilder)  # an encoded one is sealed
        before = builder.size_bytes
        if builder.try_append(*record) < 0:
            batch.is_sealed = True
            builder.promise(0)
            return None
        batch.receipt.count += 1
        return batch.receipt, self._budget.charge(topic, batch, before)

    # Metadata

    def learn(self, view: ClusterView) -> None:
        """Take over new metadata: leaders move, undesignated records get partitions."""
        self._view = view
        self._backlog.has_news = True
        # A lease places records by the number of partitions, which may have changed.
        self._budget.end_leases()
        # A copy: a partitioner of the user's may send to a topic that is new here, as
        # one does that logs to Kafka.
        topics = list(self._backlog.topics.values())
        for topic in topics:
            topic.sticky.left -= self._open_batches.unstick(topic.name)
        self._open_batches.clear()
        self._availability.learned()
        errors: list[Exception] = []
        for topic in topics:
            topic.learn(view, self._chooser.rack)
            if topic.undesignated:
                errors += self._designate_waiting(topic)
        # Last: the listener may drop records that just got a partition.
        if self.on_failed is not None:
            for error in errors:
                self.on_failed(error)

    def _designate_waiting(self, topic: TopicQueues) -> list[Exception]:
        """Give waiting records a partition; return the errors of those that failed."""
        code = self._view.topic_error(topic.name)
        if code and not reaction(apis.METADATA, code).retry:
            error = broker_error(
                code,
                f"topic {topic.name!r} cannot be written",
                api=apis.METADATA,
                topic=topic.name,
            )
            self._fail_undesignated(topic, error)
            return [error]
        # A record for a partition that does not exist yet stays and lets others pass:
        # the order is guaranteed within a partition only.
        waiting, still = topic.undesignated, topic.undesignated.__class__()
        topic.undesignated = still
        errors: list[Exception] = []
        for entry in waiting:
            if topic.partition_count <= (entry.partition or 0):
                still.append(entry)
                self._note_missing(topic, entry.partition)
                continue
            self._release(entry)
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
                errors.append(error)
            else:
                entry.receipt.move([(receipt, receipt.count - 1)])
        return errors

    def _note_missing(self, topic: TopicQueues, partition: int | None) -> None:
        count = topic.partition_count
        if partition is None or not count or partition in topic.missing:
            return
        topic.missing.add(partition)
        if self.on_missing is not None:
            tp = TopicPartition(topic.name, partition)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self.on_missing(tp, broker_error(unknown, _missing(tp, count)))

    def _release(self, entry: Undesignated) -> None:
        self._budget.release(entry.charged)
        self._backlog.let_go(entry)

    # Failures

    def expire(self, now: float) -> list[Receipt]:
        """Fail the records that waited ``max_block`` for metadata; return receipts."""
        expired = []
        patience = self._limits.max_block
        for topic in self._backlog.topics.values():
            waiting = topic.undesignated
            while waiting and waiting[0].created + patience <= now:
                entry = waiting.popleft()
                self._release(entry)
                entry.receipt.fail(self._why_waiting(topic, entry.receipt))
                expired.append(entry.receipt)
        return expired

    def _why_waiting(self, topic: TopicQueues, receipt: Receipt) -> KafkaError:
        """The error of a record that got no partition within ``max_block``."""
        limit = f"{self._limits.max_block:g} s (max_block_ms)"
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        code = self._view.topic_error(topic.name)
        if topic.partition_count:
            tp = TopicPartition(receipt.topic, receipt.partition)
            return broker_error(
                unknown,
                f"{_missing(tp, topic.partition_count)}, also after {limit}",
            )
        if not code:
            why = self.why_undescribed()
            return RequestTimeout(
                f"no broker described topic {topic.name!r} within {limit}"
                f"{why and f': {why}'}"
            )
        what = f"topic {topic.name!r} cannot be written"
        if code == unknown:
            what = f"topic {topic.name!r} is not known to the cluster"
        return broker_error(
            code, f"{what}, also after {limit}", api=apis.METADATA, topic=topic.name
        )

    def fail_all(self, error: Exception) -> None:
        """Fail all undesignated records."""
        for topic in self._backlog.topics.values():
            if topic.undesignated:
                self._fail_undesignated(topic, error)

    def _fail_undesignated(self, topic: TopicQueues, error: Exception) -> None:
        waiting, topic.undesignated = topic.undesignated, topic.undesignated.__class__()
        for entry in waiting:
            self._release(entry)
            entry.receipt.fail(error)


def _missing(tp: TopicPartition, partition_count: int) -> str:
    return (
        f"topic {tp.topic!r} has no partition {tp.partition}, only 0 to "
        f"{partition_count - 1}"
    )
