"""The share of the buffer that partitions without progress may take.

All partitions use one buffer. Without a limit, the records of one partition that cannot
be written would fill it, and calls for every other partition would wait until they
expire. So what stalled partitions hold *together* is limited to a share. Records whose
topic or partition is not known (yet) count as well. A partition that makes progress,
however slowly, is not limited.

The limit protects the other partitions that the producer writes to. Where none of them
makes progress either, because the whole cluster is out of reach or the partition is the
only one, the whole buffer is used.

The share can be exceeded by what a partition held before it was found to be stalled.
So the last eighth of the buffer is kept for partitions that hold little: a partition
that fills the buffer before its leader is known to hang cannot take it.
"""

from __future__ import annotations

from itertools import chain

from kafkaio._machines.accumulator.availability import Availability
from kafkaio._machines.accumulator.budget import Budget
from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import Backlog, PartitionQueue
from kafkaio.types import TopicPartition

#: Seconds for which a sum over all partitions is reused.
_MEASURED_FOR = 0.05


class BufferShare:
    """Says for which partitions records have to wait although there is memory.

    A *place* is a topic and a partition; -1 for a partition that is not chosen yet, or
    for whichever the sticky partitioner chooses.

    Args:
        limits: the share, and the size of the buffer.
        backlog: all records held.
        budget: the bytes in use.
        availability: says which partitions are stalled.

    Attributes:
        limit: bytes in use up to which no record has to wait because of its partition.
    """

    __slots__ = (
        "_availability",
        "_backlog",
        "_budget",
        "_changes",
        "_checked_at",
        "_checks_at",
        "_full",
        "_has_others",
        "_held",
        "_is_calm",
        "_limits",
        "_little",
        "_measured_at",
        "limit",
    )

    def __init__(
        self,
        limits: Limits,
        backlog: Backlog,
        budget: Budget,
        availability: Availability,
    ) -> None:
        self._limits = limits
        self.limit: int = limits.stalled_memory
        self._full = limits.buffer_memory - limits.reserved_memory
        self._little = limits.reserved_memory // 4
        self._backlog = backlog
        self._budget = budget
        self._availability = availability
        # The bytes of stalled partitions, and whether there are others, at that time.
        self._held = 0
        self._has_others = False
        self._measured_at = -_MEASURED_FOR
        self._changes = 0
        # Whether no partition was stalled at the last check of all, and when the next
        # one is due unless something changes before.
        self._is_calm = False
        self._checks_at = -_MEASURED_FOR
        self._checked_at = -1

    def is_tight(self, now: float) -> bool:
        """Whether a record may have to wait because of its partition.

        Asked for every record that does not go into an open batch.
        """
        budget = self._budget
        if budget.used <= self.limit or budget.held_back:
            return bool(budget.held_back)
        if self._backlog.undesignated_bytes or budget.used > self._full:
            return True
        if now >= self._checks_at or self._checked_at != self._availability.changes:
            self._checked_at = self._availability.changes
            self._checks_at = now + _MEASURED_FOR
            self._is_calm = not any(
                self._availability.is_stalled(queue, now)
                for topic in self._backlog.topics.values()
                for queue in topic.queues.values()
            )
        return not self._is_calm

    def must_wait(self, place: TopicPartition, size: int, now: float) -> bool:
        """Whether a record of ``size`` bytes must wait for the sake of others."""
        used = self._budget.used + size
        if used > self._full and self._holds_much(place, size):
            return True
        if used <= self.limit or not self.is_stalled(place, now):
            return False
        if (
            not 0 <= now - self._measured_at < _MEASURED_FOR
            or self._changes != self._availability.changes
        ):
            self._measure(now)
        return self._has_others and self._held + size > self.limit

    def _holds_much(self, place: TopicPartition, size: int) -> bool:
        topic = self._backlog.topics.get(place.topic)
        queue = None if topic is None else topic.queues.get(place.partition)
        if queue is None or self._backlog.queue_count == 1:
            return False
        # Asked with each batch while the buffer is nearly full of small ones, so it
        # counts no further than it has to.
        held = 0
        for batch in chain(queue.waiting, queue.on_wire):
            held += batch.charged
            if held > 0 and held + size > self._little:
                return True
        return False

    def took(self, place: TopicPartition, size: int, now: float) -> None:
        """Note that a record for a place is taken in."""
        if now - self._measured_at < _MEASURED_FOR and self.is_stalled(place, now):
            self._held += size

    def is_stalled(self, place: TopicPartition, now: float) -> bool:
        """Whether records for a place make no progress."""
        topic = self._backlog.topics.get(place.topic)
        if topic is None:
            return False
        if topic.partition_count <= max(place.partition, 0):
            return True
        if place.partition < 0:
            return self._availability.is_without_choice(topic)
        queue = topic.queues.get(place.partition)
        return queue is not None and self._availability.is_stalled(queue, now)

    def _measure(self, now: float) -> None:
        self._measured_at = now
        self._changes = self._availability.changes
        is_stalled = self._availability.is_stalled
        backlog = self._backlog
        self._held = backlog.undesignated_bytes + sum(
            _bytes_of(queue)
            for queue in backlog.active.values()
            if is_stalled(queue, now)
        )
        self._has_others = any(
            not is_stalled(queue, now)
            for topic in backlog.topics.values()
            for queue in topic.queues.values()
        )

    def hold_back(self, place: TopicPartition) -> None:
        """Make records for a place go through the accumulator: a call for it waits."""
        self._budget.held_back.add(place)
        queue = self._backlog.active.get(place)
        if queue is not None and queue.waiting:
            self._budget.end_lease(queue.waiting[-1])

    def let_in(self, place: TopicPartition) -> None:
        """Note that no call for a place waits any more."""
        self._budget.held_back.discard(place)

    def why(self, place: TopicPartition, now: float) -> str:
        """Return why records for a place have to wait, for an error."""
        topic, partition = place
        what = f"topic {topic!r}" if partition < 0 else f"{topic}-{partition}"
        if not self.is_stalled(place, now):
            return (
                f"{what} holds much of the producer's buffer, and what is left of "
                f"buffer_memory={self._limits.buffer_memory} is for other partitions"
            )
        return (
            f"{what} makes no progress, and partitions without progress hold as much "
            f"of the producer's buffer as they may: stalled_partitions_buffer_percent="
            f"{self._limits.stalled_percent} of buffer_memory="
            f"{self._limits.buffer_memory}"
        )


def _bytes_of(queue: PartitionQueue) -> int:
    waiting = sum(batch.charged for batch in queue.waiting)
    return waiting + sum(batch.charged for batch in queue.on_wire)
