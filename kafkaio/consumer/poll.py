"""What a consumer hands out: the result of a poll, and batches of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkaio.types import Record, TopicPartition

__all__ = ["Batch", "Poll"]


@dataclass(frozen=True, slots=True)
class Poll:
    """What one call of ``Consumer.poll`` brought (KIP-983).

    Attributes:
        records: records in the order of their offsets, partition by partition.
        to_be_revoked: partitions that the group asked back. None of their records is
            handed out any more; commits of them still count until the next poll.
        lost: partitions that were taken without asking, since the poll before. One
            that is assigned again by now is read anew, from what was committed.
    """

    records: list[Record]
    to_be_revoked: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one partition; at least one.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        records: in the order of their offsets.
        assignment: number of the assignment that they were read under: a commit of
            the batch after the partition was lost is refused, even if the partition
            was assigned again since.
    """

    topic: str
    partition: int
    records: list[Record]
    assignment: int = field(default=-1, repr=False)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the records came from."""
        return TopicPartition(self.topic, self.partition)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.records[0].offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.records[-1].offset
