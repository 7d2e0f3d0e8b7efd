"""What the accumulator knows of one topic: its partitions, and who chooses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import field

from kafkaio._dataclass import dataclass
from kafkaio._machines.accumulator.batch import PlainRecord, Receipt
from kafkaio._machines.accumulator.queue import PartitionQueue
from kafkaio._machines.metadata import ClusterView
from kafkaio._machines.partitioner import StickyPartition, draw, key_partition
from kafkaio.config import Partitioner

__all__ = ["Chooser", "TopicQueues", "Undesignated"]


@dataclass(frozen=True, slots=True)
class Undesignated:
    """A record whose partition cannot be told yet, because its topic is not known."""

    receipt: Receipt
    partition: int | None
    record: PlainRecord
    created: float
    charged: int


@dataclass(slots=True)
class TopicQueues:
    """One topic: its partitions' queues and the records that have no partition yet.

    Attributes:
        name: name of the topic.
        sticky: where keyless records go.
        batch_size: bytes that a new batch may reach: less than the option says, once
            brokers have refused a larger one.
        partition_count: partitions it has, 0 while that is not known.
        available: the partitions that have a leader.
        queues: the queues begun so far, by partition number.
        undesignated: records that wait for metadata, oldest first.
        used_at: when a record was last appended.
    """

    name: str
    sticky: StickyPartition
    batch_size: int
    partition_count: int = 0
    available: tuple[int, ...] = ()
    queues: dict[int, PartitionQueue] = field(default_factory=dict)
    undesignated: deque[Undesignated] = field(default_factory=deque)
    used_at: float = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no record of the topic waits or is on the wire."""
        return not self.undesignated and all(
            queue.is_idle for queue in self.queues.values()
        )

    def learn(self, view: ClusterView) -> None:
        """Take over what the metadata says now."""
        self.partition_count = view.partition_count(self.name) or 0
        partitions = view.partitions(self.name)
        self.available = tuple(p.partition for p in partitions if p.leader >= 0)
        known = {p.partition: p for p in partitions}
        for number, queue in self.queues.items():
            partition = known.get(number)
            if partition is None:
                queue.led_by(-1, -1)
            else:
                queue.led_by(partition.leader, partition.leader_epoch)


class Chooser:
    """Chooses partitions: named, custom, by key, or sticky, in this order.

    Args:
        dice: returns a number in [0, 1) each time it is called.
        custom: the user's partitioner.
        ignore_keys: treat records with keys like those without.
        adaptive: give partitions with longer queues less.
    """

    __slots__ = ("_adaptive", "_custom", "_dice", "_ignore_keys")

    def __init__(
        self,
        dice: Callable[[], float],
        *,
        custom: Partitioner | None = None,
        ignore_keys: bool = False,
        adaptive: bool = True,
    ) -> None:
        self._dice = dice
        self._custom = custom
        self._ignore_keys = ignore_keys
        self._adaptive = adaptive

    @property
    def is_custom(self) -> bool:
        """Whether the user's partitioner has to be asked about every record."""
        return self._custom is not None

    def choose(self, topic: TopicQueues, record: PlainRecord) -> int:
        """Return the partition of a record that names none; -1 for the sticky one.

        Args:
            topic: the topic, whose partition count is known.
            record: the record.

        Raises:
            ValueError: the custom partitioner returned no partition of the topic.
            Exception: whatever the custom partitioner raises.
        """
        _, key, value, _ = record
        if self._custom is not None:
            return self._ask(self._custom, topic, key, value)
        if key is not None and not self._ignore_keys:
            return key_partition(key, topic.partition_count)
        return -1

    def _ask(
        self,
        custom: Partitioner,
        topic: TopicQueues,
        key: bytes | None,
        value: bytes | None,
    ) -> int:
        count = topic.partition_count
        chosen = custom(topic.name, key, value, count)
        if type(chosen) is not int or not 0 <= chosen < count:
            raise ValueError(
                f"the partitioner returned {chosen!r} for topic {topic.name!r}, "
                f"which has partitions 0 to {count - 1}"
            )
        return chosen

    def draw(self, topic: TopicQueues, slow: Collection[int]) -> int:
        """Draw the partition that keyless records stick to from now on.

        Args:
            topic: the topic, whose partition count is known.
            slow: node ids of leaders to avoid, if others are left.
        """
        partitions = topic.available or tuple(range(topic.partition_count))
        queues = topic.queues
        if slow:
            partitions = (
                tuple(
                    number
                    for number in partitions
                    if number not in queues or queues[number].leader not in slow
                )
                or partitions
            )
        loads = None
        if self._adaptive and len(queues) >= topic.partition_count:
            share = topic.sticky.share
            loads = [
                queue.load(share) if (queue := queues[number]).waiting else 0
                for number in partitions
            ]
        return draw(partitions, loads, self._dice())
