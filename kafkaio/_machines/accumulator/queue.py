"""The batches of one partition: those that wait and those on the wire."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from operator import attrgetter

from kafkaio._machines.accumulator.batch import ProduceBatch
from kafkaio._machines.sequence import PartitionSequence
from kafkaio.types import TopicPartition

__all__ = ["PartitionQueue"]

_by_rank = attrgetter("rank")


class PartitionQueue:
    """The batches of one partition, in the order in which they must be written.

    With a sequence, several may be on the wire and the sequence says which goes next.
    Without one, order can only be kept with one at a time: the partition is muted
    while a batch is on the wire.

    Attributes:
        partition: the partition.
        leader: node id of the leader, -1 while there is none.
        leader_epoch: its epoch, -1 if unknown.
        waiting: batches to be sent, lowest rank first; the last one takes records
            until it is sealed.
        on_wire: batches sent and neither answered nor lost, lowest rank first.
        sequence: the numbering, None without idempotence.
    """

    __slots__ = (
        "_next_rank",
        "leader",
        "leader_epoch",
        "on_wire",
        "partition",
        "sequence",
        "waiting",
    )

    def __init__(
        self,
        partition: TopicPartition,
        sequence: PartitionSequence[ProduceBatch] | None,
    ) -> None:
        self.partition = partition
        self.sequence = sequence
        self.leader = -1
        self.leader_epoch = -1
        self.waiting: deque[ProduceBatch] = deque()
        self.on_wire: list[ProduceBatch] = []
        self._next_rank = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is on the wire."""
        return not self.waiting and not self.on_wire

    def load(self, share: int) -> int:
        """Return how many times ``share`` bytes wait, rounded up."""
        return -(-sum(batch.builder.size_bytes for batch in self.waiting) // share)

    def new_rank(self) -> tuple[int]:
        """Return the rank of the next new batch."""
        self._next_rank += 1
        return (self._next_rank,)

    def led_by(self, leader: int, leader_epoch: int) -> None:
        """Note the leader. With a new one there is no reason to wait out a back-off."""
        if (leader, leader_epoch) == (self.leader, self.leader_epoch):
            return
        self.leader = leader
        self.leader_epoch = leader_epoch
        if leader >= 0:
            for batch in self.waiting:
                batch.retry_at = 0.0

    def candidate(self) -> ProduceBatch | None:
        """Return the batch that order allows to be sent now; time is not looked at."""
        head = self.waiting[0] if self.waiting else None
        if self.sequence is not None:
            return self.sequence.sendable(head)
        return None if self.on_wire else head

    def take(self, batch: ProduceBatch) -> None:
        """Move ``batch``, the candidate, to the wire."""
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
            insort(self.on_wire, batch, key=_by_rank)

    def put_back(self, batches: Iterable[ProduceBatch]) -> None:
        """Let batches wait (again), each where its rank says."""
        for batch in batches:
            at = bisect_left(self.waiting, batch.rank, key=_by_rank)
            self.waiting.insert(at, batch)

    def give_up(self, batch: ProduceBatch) -> None:
        """Remove ``batch``, which waits."""
        self.waiting.remove(batch)
        if self.sequence is not None and batch.identity is not None:
            self.sequence.failed(batch)
