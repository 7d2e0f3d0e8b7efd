"""Failures of deserializers in ``Consumer.run`` that say nothing about the record.

A registry that is down fails many records of a partition at a time. They share one
back-off, and one of them is reported. It grows until that record succeeds.
"""

from __future__ import annotations

from kafkaio._machines.backoff import Backoff
from kafkaio._named_tuple import NamedTuple
from kafkaio.types import AnyRecord, TopicPartition


class _Passing(NamedTuple):
    # The record that was reported last, how often in a row, and until when all wait.
    offset: int
    attempts: int
    until: float


class PassingFailures:
    """The partitions with such failures, and when they are tried again.

    Args:
        backoff: the waits.
    """

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures: dict[TopicPartition, _Passing] = {}

    def failed(self, record: AnyRecord, now: float, roll: float) -> tuple[float, int]:
        """Note a failure.

        Args:
            record: the record.
            now: the time.
            roll: a random number from 0 to 1.

        Returns:
            When to try again, and the number of the attempt; 0 if the failure belongs
            to one that was reported.
        """
        tp = record.topic_partition
        before = self._failures.get(tp, _Passing(-1, 0, now))
        if now < before.until:
            return before.until, 0
        until = now + self._backoff.delay(before.attempts, roll)
        self._failures[tp] = _Passing(record.offset, before.attempts + 1, until)
        return until, before.attempts + 1

    def succeeded(self, record: AnyRecord) -> None:
        """Note that a record was deserialized."""
        if not self._failures:
            return
        failure = self._failures.get(record.topic_partition)
        if failure is not None and failure.offset == record.offset:
            del self._failures[record.topic_partition]

    def forget(self, tp: TopicPartition) -> None:
        """Note that a partition is not assigned any more."""
        self._failures.pop(tp, None)

    def holds(self, tp: TopicPartition, now: float) -> bool:
        """Whether a partition waits for its back-off."""
        failure = self._failures.get(tp)
        return failure is not None and now < failure.until

    def next_due(self, since: float) -> float | None:
        """Return when the next back-off ends; None without one.

        Args:
            since: a time before `holds` was asked: a back-off that has ended after it
                ends now.
        """
        ends = [each.until for each in self._failures.values() if each.until > since]
        return min(ends, default=None)
