"""When a partition has waited too long for its position."""

from __future__ import annotations

from itertools import pairwise

from kafkaio._machines.positions import PATIENCE, Overdue, Token
from kafkaio.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE, TWO = Token(1, 0), Token(1, 1)


def test_a_partition_is_overdue_after_a_while_in_one_stage():
    overdue = Overdue()
    assert overdue.look({A: ONE}, 0.0) == []
    assert overdue.next_look == PATIENCE
    assert overdue.look({A: ONE}, PATIENCE - 0.1) == []
    assert not overdue.has({A: ONE})
    assert overdue.look({A: ONE}, PATIENCE) == [A]
    assert overdue.has({A: ONE})
    assert overdue.has({})


def test_progress_begins_the_wait_anew():
    overdue = Overdue()
    overdue.look({A: ONE}, 0.0)
    assert overdue.look({A: TWO}, PATIENCE) == []
    assert not overdue.has({A: TWO})
    assert overdue.look({A: TWO}, 2 * PATIENCE) == [A]
    assert not overdue.has({A: ONE})


def test_one_that_was_found_is_forgotten():
    overdue = Overdue()
    overdue.look({A: ONE, B: ONE}, 0.0)
    assert overdue.look({B: ONE}, PATIENCE) == [B]
    assert overdue.look({A: ONE, B: ONE}, PATIENCE) == []
    assert not overdue.has({A: ONE, B: ONE})
    overdue.look({}, PATIENCE)
    assert overdue.next_look is None


def test_reports_come_with_growing_pauses():
    overdue, reported, time = Overdue(), list[float](), 0.0
    overdue.look({A: ONE}, time)
    while len(reported) < 9:
        time = overdue.next_look or 0.0
        assert overdue.look({A: ONE}, time) == [A]
        reported.append(time)
    pauses = [later - time for time, later in pairwise(reported)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
