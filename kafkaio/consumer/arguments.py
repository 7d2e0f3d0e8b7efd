"""Checks what a consumer and its calls are given."""

from __future__ import annotations

from kafkaio.errors import UsageError
from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["most_of", "offset_of", "partition_of", "seconds_of"]


def partition_of(partition: object) -> TopicPartition:
    """Return what names a partition as a TopicPartition; any such pair will do.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise UsageError(f"{partition!r} is no TopicPartition")
    topic, number = partition
    if not isinstance(topic, str) or not _is_int(number):
        raise UsageError(f"{partition!r} is no TopicPartition")
    if not topic or number < 0:
        raise UsageError(f"there is no partition {number} of a topic {topic!r}")
    return TopicPartition(topic, number)


def offset_of(offset: object) -> OffsetAndMetadata:
    """Return the offset of a record, with or without what is committed with it.

    Raises:
        UsageError: it is none; a negative one is left to the caller.
    """
    where: object = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
    if (
        not isinstance(where, OffsetAndMetadata)
        or not _is_int(where.offset)
        or not _is_str(where.metadata)
        or not _is_int(where.leader_epoch)
    ):
        raise UsageError(
            f"{offset!r} is no offset: give an int, or an OffsetAndMetadata of an int"
        )
    return where


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def most_of(max_records: int | None, default: int) -> int:
    """Return how many records may be taken at once.

    Raises:
        TypeError: the number is no int.
        UsageError: it is below 1.
    """
    if max_records is None:
        return default
    if type(max_records) is not int:
        raise TypeError(f"max_records must be int or None, not {max_records!r}")
    if max_records < 1:
        raise UsageError(f"max_records={max_records} leaves nothing to take")
    return max_records


def seconds_of(name: str, seconds: float) -> float:
    """Return how long something may wait; infinity is for ever.

    Raises:
        TypeError: it is no number.
        UsageError: it is negative, or not a number by IEEE 754.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {seconds!r}")
    if not seconds >= 0:  # holds for nan too
        raise UsageError(f"{name}={seconds} is no time to wait")
    return seconds
