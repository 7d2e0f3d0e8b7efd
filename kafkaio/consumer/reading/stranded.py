"""What the user is told of a partition that has no position and no policy."""

from __future__ import annotations

from kafkaio._machines.positions import PartitionPosition
from kafkaio.errors import LogTruncated, OffsetOutOfRange
from kafkaio.types import TopicPartition

__all__ = ["stranded"]


def stranded(tp: TopicPartition, entry: PartitionPosition) -> OffsetOutOfRange:
    """The error that says why nothing can be read of a partition."""
    topic, partition = tp
    if entry.truncation is not None:
        return LogTruncated(
            topic, partition, entry.truncation.position, entry.truncation.end
        )
    what = (
        f"{topic}-{partition} has no committed offset"
        if entry.outside < 0
        else f"offset {entry.outside} is outside the log of {topic}-{partition}"
    )
    return OffsetOutOfRange(
        f"{what} and auto_offset_reset is none: seek, or choose a policy",
        topic=topic,
        partition=partition,
        position=entry.outside,
    )
