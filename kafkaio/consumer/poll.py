"""What a poll of a consumer brings."""

from __future__ import annotations

from kafkaio._dataclass import dataclass
from kafkaio.types import Record, TopicPartition

__all__ = ["Poll"]


@dataclass(frozen=True, slots=True)
class Poll:
    """What one call of ``Consumer.poll`` brought (KIP-983).

    Attributes:
        records: records in the order of their offsets, partition by partition.
        to_be_revoked: partitions that the group asked back and that the next poll
            gives up, unless they are delayed or held. None of their records is handed
            out any more; commits of them still count.
        lost: partitions that were taken without asking, since the poll before. One
            that is assigned again by now is read anew, from what was committed.
    """

    records: list[Record]
    to_be_revoked: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()
