"""Checks what a consumer and its calls are given."""

from __future__ import annotations

from kafkaio.errors import UsageError

__all__ = ["most_of", "seconds_of"]


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
