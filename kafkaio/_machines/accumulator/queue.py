"""The records that a producer holds: in batches, by partition, by topic, and all.

A `ProduceBatch` is sent, and succeeds or fails, as one. `PartitionQueue` and
`TopicQueues` keep the order of the batches that wait and of those on the wire. The
parts of the accumulator share one `Backlog`, which also has the marks by which they
inform the sender. It decides nothing; they change only its documented attributes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator.exchange import Exchange
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.partitioner import PartitionTurns, StickyPartition
from kafkaio._machines.sequence import UNNUMBERED, IdAndEpoch, PartitionSequence
from kafkaio._records._impl import Receipt as Receipt
from kafkaio._records.builder import BatchBuilder, PlainRecord as PlainRecord
from kafkaio.protocol._message import Buffers
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._records.raw import EncodedBatch

_FOREVER = float("inf")
#: Bytes of a batch from which on its records are not copied.
_VIEWED = 16_384

#: A batch's place among those of its partition. The parts of a batch that was split
#: take its place: (7,) < (7, 0) < (7, 1) < (8,).
Rank: TypeAlias = tuple[int, ...]

#: The records of a batch: written one after the other, or encoded already.
BatchRecords: TypeAlias = "BatchBuilder | EncodedBatch"

_by_rank = attrgetter("rank")


class ProduceBatch:
    """Records of one partition that are sent, and succeed or fail, together.

    A batch is open, then sealed; it waits, then is on the wire. If an attempt does not
    succeed, it waits again, until its receipt is settled. It may be leased only while
    it is open and waits, and it has an identity from the moment it is first sent.

    Attributes:
        partition: the partition.
        rank: its place among the batches of the partition.
        builder: the records; a batch that was encoded elsewhere is sealed from the
            beginning.
        receipt: the outcome, to which the deliveries of its records refer.
        created: time of its first record, in seconds.
        is_leased: whether records go into it past the accumulator, which has charged
            it with all bytes that it may still use.
        is_sealed: whether it takes no more records.
        is_expired: whether its receipt failed while it was on the wire.
        is_on_wire: whether it was sent, and neither answered nor lost.
        is_uncertain: whether an earlier attempt was never answered, so that the batch
            may be in the log.
        identity: the producer identity it was numbered under, None before.
        base_sequence: sequence number of its first record, -1 before.
        attempts: how often it was sent.
        first_sent_at: when it was first sent, in seconds; None before.
        sent_at: when it was sent last, in seconds; 0 before.
        wire_size: its bytes when it was encoded last; 0 before.
        retry_at: time before which it is not sent again.
        sent_to: leader and leader epoch of the last attempt.
        breaks: how often the connection broke while it was on it, in a row.
        is_ambiguous: whether it is a part of a batch that may be in the log as a whole:
            if the broker refuses its number, its outcome is unknown.
        cause: the error of the last attempt, or the reason why none was made.
        charged: bytes of buffer memory that it is charged with.
        held: why its last request was held back, for error messages; empty if not.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "breaks",
        "builder",
        "cause",
        "charged",
        "created",
        "first_sent_at",
        "held",
        "identity",
        "is_ambiguous",
        "is_expired",
        "is_leased",
        "is_on_wire",
        "is_sealed",
        "is_uncertain",
        "partition",
        "rank",
        "receipt",
        "retry_at",
        "sent_at",
        "sent_to",
        "wire_size",
    )

    def __init__(
        self,
        partition: TopicPartition,
        rank: Rank,
        builder: BatchRecords,
        receipt: Receipt,
        created: float,
    ) -> None:
        self.identity: IdAndEpoch | None = None
        self.base_sequence: int = UNNUMBERED
        self.is_on_wire: bool = False
        self.is_uncertain: bool = False
        self.partition: TopicPartition = partition
        self.rank: Rank = rank
        self.builder: BatchRecords = builder
        self.receipt: Receipt = receipt
        self.created: float = created
        self.is_leased: bool = False
        self.is_sealed: bool = False
        self.is_expired: bool = False
        self.held: str = ""
        self.attempts: int = 0
        self.first_sent_at: float | None = None
        self.sent_at: float = 0.0
        self.wire_size: int = 0
        self.retry_at: float = 0.0
        self.sent_to: tuple[int, int] = (-1, -1)
        self.breaks: int = 0
        self.is_ambiguous: bool = False
        self.cause: Exception | None = None
        self.charged: int = 0

    @property
    def count(self) -> int:
        """Records in the batch."""
        return self.builder.count

    def encode(self) -> Buffers:
        """Return the bytes of the batch, with its current sequence numbers.

        Those of a large batch are its header and a view of its records: a copy would
        take longer than all else, and as much memory.
        """
        if self.identity is None:
            parts = self.builder.build_parts()
        else:
            parts = self.builder.build_parts(
                self.identity.producer_id, self.identity.epoch, self.base_sequence
            )
        first, rest = parts
        self.wire_size = len(first) + len(rest)
        if not rest:
            return first
        return b"".join(parts) if self.wire_size < _VIEWED else parts

    def __repr__(self) -> str:
        topic, partition = self.partition
        state = "on the wire" if self.is_on_wire else "waiting"
        return (
            f"<ProduceBatch {topic}-{partition} {state} | {self.count} records, "
            f"sequence {self.base_sequence}, {self.attempts} attempts>"
        )


class PartitionQueue:
    """The batches of one partition, in the order in which they must be written.

    Attributes:
        partition: the partition.
        leader: node id of the leader, -1 while there is none.
        leader_epoch: its epoch, -1 if unknown.
        waiting: batches to be sent, lowest rank first; the last one takes records
            until it is sealed.
        on_wire: batches sent and neither answered nor lost, lowest rank first.
        sequence: the sequence numbers, None without idempotence.
        is_refused: whether the last attempt to write to it was not successful, and
            something is left to be written.
        ranks: has the ranks of new batches.
        exchange: the requests with one batch of it; None before the first.
    """

    __slots__ = (
        "exchange",
        "is_refused",
        "leader",
        "leader_epoch",
        "on_wire",
        "partition",
        "ranks",
        "sequence",
        "waiting",
    )

    def __init__(
        self,
        partition: TopicPartition,
        sequence: PartitionSequence[ProduceBatch] | None,
    ) -> None:
        self.partition: TopicPartition = partition
        self.sequence: PartitionSequence[ProduceBatch] | None = sequence
        self.leader: int = -1
        self.leader_epoch: int = -1
        self.waiting: deque[ProduceBatch] = deque()
        self.on_wire: list[ProduceBatch] = []
        self.is_refused: bool = False
        self.ranks: Iterator[int] = count(1)
        self.exchange: Exchange | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is on the wire."""
        return not self.waiting and not self.on_wire

    def load(self, share: int) -> int:
        """Return how many times ``share`` bytes wait, rounded up."""
        return -(-self.waiting_bytes // share)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the batches that wait."""
        return sum(batch.builder.size_bytes for batch in self.waiting)

    def led_by(self, leader: int, leader_epoch: int) -> None:
        """Set the leader. A new one ends the back-off of all batches that wait."""
        if (leader, leader_epoch) == (self.leader, self.leader_epoch):
            return
        self.leader = leader
        self.leader_epoch = leader_epoch
        if leader >= 0:
            for batch in self.waiting:
                batch.retry_at = 0.0

    def take(self, batch: ProduceBatch) -> None:
        """Move ``batch`` to the wire; the gate has let it pass."""
        self.waiting.remove(batch)
        batch.is_sealed = True
        batch.attempts += 1
        batch.sent_to = (self.leader, self.leader_epoch)
        if self.sequence is not None:
            self.sequence.sent(batch)
        batch.is_on_wire = True
        if not self.on_wire or self.on_wire[-1].rank < batch.rank:
            self.on_wire.append(batch)
        else:
            # A batch that is sent again precedes those that were sent after it.
            insort(self.on_wire, batch, key=_by_rank)

    def put_back(self, batches: Iterable[ProduceBatch]) -> None:
        """Let batches wait (again), each at the place of its rank."""
        for batch in batches:
            at = bisect_left(self.waiting, batch.rank, key=_by_rank)
            self.waiting.insert(at, batch)

    def drop(self, batch: ProduceBatch) -> None:
        """Remove ``batch`` from those that wait; it is not sent again."""
        self.waiting.remove(batch)
        # A batch without a number leaves no gap in the sequence.
        if self.sequence is not None and batch.identity is not None:
            self.sequence.failed(batch)


@dataclass(frozen=True, slots=True)
class Undesignated:
    """A record without a partition, because its topic's metadata is not known yet."""

    receipt: Receipt
    partition: int | None
    record: PlainRecord
    created: float
    charged: int


@dataclass(slots=True)
class TopicQueues:
    """One topic: the queues of its partitions, and the records without a partition.

    Attributes:
        name: name of the topic.
        sticky: the partition of records without a key.
        turns: the partition of rows of tables without a key.
        batch_size: bytes that a new batch may reach. It is less than the option once
            brokers have refused a larger batch.
        partition_count: number of partitions, 0 while that is not known.
        available: the partitions that have a leader.
        leaders: the leaders of these partitions.
        near: those of them whose leader is in the client's rack, if records without a
            key are to stay there (KIP-1123).
        near_unused: those of these that nothing was written to so far.
        usable: what `Availability.usable` found last, and from what.
        queues: the queues so far, by partition number.
        topic_id: its id, None while that is not known.
        undesignated: records that wait for metadata, oldest first.
        missing: partitions that records were sent to, and that it does not have.
        used_at: time when a record was last appended.
    """

    name: str
    sticky: StickyPartition
    batch_size: int
    partition_count: int = 0
    topic_id: UUID | None = None
    available: tuple[int, ...] = ()
    leaders: Mapping[int, int] = field(default_factory=dict)
    near: tuple[int, ...] = ()
    near_unused: set[int] = field(default_factory=set)
    usable: tuple[object, Sequence[int]] = (None, ())
    queues: dict[int, PartitionQueue] = field(default_factory=dict)
    undesignated: deque[Undesignated] = field(default_factory=deque)
    missing: set[int] = field(default_factory=set)
    used_at: float = 0.0
    turns: PartitionTurns = field(default_factory=PartitionTurns)

    @property
    def is_idle(self) -> bool:
        """Whether no record of the topic waits or is on the wire."""
        return not self.undesignated and all(
            queue.is_idle for queue in self.queues.values()
        )

    def learn(self, view: ClusterView, rack: str | None = None) -> None:
        """Take over new metadata.

        Args:
            view: the metadata.
            rack: where records without a key are to stay; None for anywhere.
        """
        self.partition_count = view.partition_count(self.name) or 0
        self._identify(view.topic_id(self.name))
        if self.missing:
            self.missing = {n for n in self.missing if n >= self.partition_count}
        partitions = view.partitions(self.name)
        self.leaders = {p.partition: p.leader for p in partitions if p.leader >= 0}
        self.available = tuple(sorted(self.leaders))
        if rack is not None:
            there = {
                each.node_id for each in view.brokers.values() if each.rack == rack
            }
            self.near = tuple(n for n in self.available if self.leaders[n] in there)
            self.near_unused = set(self.near).difference(self.queues)
        known = {p.partition: p for p in partitions}
        for number, queue in self.queues.items():
            partition = known.get(number)
            if partition is None:
                queue.led_by(-1, -1)
            else:
                queue.led_by(partition.leader, partition.leader_epoch)

    def _identify(self, topic_id: UUID | None) -> None:
        if topic_id != self.topic_id:
            self.topic_id = topic_id
            for queue in self.queues.values():
                queue.exchange = None  # it names the topic by the id


class Backlog:
    """All records that a producer holds.

    Attributes:
        topics: the topics written to so far, by name.
        active: the queues with a batch that waits or is on the wire, in the order in
            which they became active.
        has_news: set when the sender has something to check; the sender resets it.
        has_new_topic: set when metadata of another topic is needed; the sender resets
            it.
        expires_at: before this time nothing expires. It is not postponed when the
            batch in question is acknowledged: that would cost a check of every batch.
        deadline: when every batch expires, whatever its age: the end of a transaction.
            Infinity for never.
        has_zstd: whether a batch that was encoded with zstd elsewhere was taken in.
        undesignated_bytes: bytes that records without a partition are charged with.
        queue_count: how many partitions were written to so far.
    """

    __slots__ = (
        "_unknown",
        "active",
        "deadline",
        "expires_at",
        "has_new_topic",
        "has_news",
        "has_zstd",
        "queue_count",
        "topics",
        "undesignated_bytes",
    )

    def __init__(self) -> None:
        self.topics: dict[str, TopicQueues] = {}
        self.active: dict[TopicPartition, PartitionQueue] = {}
        # Invariant: contains every topic with undesignated records; others are removed
        # late. The sender asks after every answer, and topics can be thousands.
        self._unknown: dict[str, TopicQueues] = {}
        self.has_news: bool = False
        self.has_new_topic: bool = False
        self.has_zstd: bool = False
        self.expires_at: float = _FOREVER
        self.deadline: float = _FOREVER
        self.undesignated_bytes: int = 0
        self.queue_count: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no record waits and none is on the wire."""
        return not self.active and not (self._unknown and self.unknown_topics())

    @property
    def is_all_sent(self) -> bool:
        """Whether no record waits to be sent, or for its topic's metadata."""
        for queue in self.active.values():
            if queue.waiting:
                return False
        return not (self._unknown and self.unknown_topics())

    def hold(self, topic: TopicQueues, entry: Undesignated) -> None:
        """Keep a record until its topic's metadata is known."""
        topic.undesignated.append(entry)
        self.undesignated_bytes += entry.charged
        self._unknown[topic.name] = topic
        self.has_new_topic = self.has_news = True

    def let_go(self, entry: Undesignated) -> None:
        """Note that a record, taken from those of its topic, waits no longer."""
        self.undesignated_bytes -= entry.charged

    def unknown_topics(self) -> list[str]:
        """The topics for whose metadata records wait."""
        self._unknown = {
            name: topic for name, topic in self._unknown.items() if topic.undesignated
        }
        return list(self._unknown)

    def topics_in_use(self, since: float) -> frozenset[str]:
        """The topics that records wait for, or were appended to after ``since``."""
        return frozenset(
            name
            for name, topic in self.topics.items()
            if topic.used_at > since or not topic.is_idle
        )
