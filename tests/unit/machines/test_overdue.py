"""When a partition has waited too long for its position."""

from __future__ import annotations

from itertools import pairwise

from kafkaio._machines.positions import PATIENCE, Overdue, PositionToken
from kafkaio.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE, TWO = PositionToken(1, 0), PositionToken(1, 1)


def test_a_partition_is_overdue_after_a_while_in_one_stage():
    overdue = Overdue()
    assert overdue.update({A: ONE}, 0.0) == []
    assert overdue.next_report == PATIENCE
    assert overdue.update({A: ONE}, PATIENCE - 0.1) == []
    assert not overdue.has({A: ONE})
    assert overdue.update({A: ONE}, PATIENCE) == [A]
    assert overdue.has({A: ONE})
    assert overdue.has({})


def test_progress_begins_the_wait_anew():
    overdue = Overdue()
    overdue.update({A: ONE}, 0.0)
    assert overdue.update({A: TWO}, PATIENCE) == []
    assert not overdue.has({A: TWO})
    assert overdue.update({A: TWO}, 2 * PATIENCE) == [A]
    assert not overdue.has({A: ONE})


def test_one_that_was_found_is_forgotten():
    overdue = Overdue()
    overdue.update({A: ONE, B: ONE}, 0.0)
    assert overdue.update({B: ONE}, PATIENCE) == [B]
    assert overdue.update({A: ONE, B: ONE}, PATIENCE) == []
    assert not overdue.has({A: ONE, B: ONE})
    overdue.update({}, PATIENCE)
    assert overdue.next_report is None


def test_reports_come_with_growing_pauses():
    overdue, reported, time = Overdue(), list[float](), 0.0
    overdue.update({A: ONE}, time)
    while len(reported) < 9:
        time = overdue.next_report or 0.0
        assert overdue.update({A: ONE}, time) == [A]
        reported.append(time)
    pauses = [later - time for time, later in pairwise(reported)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
