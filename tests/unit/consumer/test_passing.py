"""Failures of deserializers in `run` share a back-off for each partition."""

from __future__ import annotations

from kafkaio._consumer.parallel.passing import PassingFailures
from kafkaio._machines.backoff import Backoff
from kafkaio.types import Record, TopicPartition


def record(offset: int, partition: int = 0) -> Record:
    return Record("t", partition, offset, 0, None, b"")


def test_of_many_that_fail_together_one_is_reported() -> None:
    failures = PassingFailures(Backoff(100, 1000))
    until, attempt = failures.failed(record(3), 10.0, 0.5)
    assert attempt == 1
    assert 10.05 < until < 10.15
    assert failures.failed(record(4), 10.01, 0.5) == (until, 0)
    # Another partition has a back-off of its own.
    assert failures.failed(record(3, partition=1), 10.01, 0.5)[1] == 1
    later, attempt = failures.failed(record(4), until, 0.5)
    assert attempt == 2
    assert later - until > until - 10.0


def test_it_ends_with_the_record_that_was_reported() -> None:
    failures = PassingFailures(Backoff(100, 1000))
    assert failures.next_due(0.0) is None
    until, _ = failures.failed(record(3), 10.0, 0.5)
    failures.succeeded(record(2))
    tp = TopicPartition("t", 0)
    assert failures.holds(tp, 10.0)
    assert not failures.holds(tp, until)
    assert (failures.next_due(10.0), failures.next_due(until)) == (until, None)
    failures.succeeded(record(3))
    assert not failures.holds(tp, 10.0)
    assert failures.failed(record(5), 11.0, 0.5)[1] == 1
    failures.forget(tp)
    assert failures.failed(record(5), 11.0, 0.5)[1] == 1
