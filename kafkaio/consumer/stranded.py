"""What the user is told of a partition that has no position and no policy."""

from __future__ import annotations

from kafkaio._machines.positions import Cut
from kafkaio.errors import LogTruncated, OffsetOutOfRange
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import TopicPartition

__all__ = ["stranded"]


def stranded(tp: TopicPartition, cut: Cut | None) -> OffsetOutOfRange:
    """The error that says why nothing can be read of a partition."""
    if cut is not None:
        return LogTruncated(tp.topic, tp.partition, cut.position, cut.end)
    return OffsetOutOfRange(
        f"{tp.topic}-{tp.partition} has no valid position and auto_offset_reset is "
        "none: seek, or choose a policy",
        code=ErrorCode.OFFSET_OUT_OF_RANGE,
        name=ErrorCode.OFFSET_OUT_OF_RANGE.name,
    )
