"""How far fetching runs ahead: as far as the reader needs."""

from __future__ import annotations

import pytest

from kafkaio._machines.read_ahead import ReadAhead


def begun() -> ReadAhead:
    made = ReadAhead(50)
    assert not made.answered(is_awaited=True)
    return made


def test_three_answers_of_five_at_first():
    made = begun()
    assert made.size == 30
    assert repr(made) == "<ReadAhead 30 of 50 bytes>"
    for _ in range(20):
        assert not made.answered(is_awaited=False)
    assert made.size == 30


def test_all_of_the_buffer_once_the_reader_waits_for_a_large_answer():
    made = begun()
    assert made.answered(is_awaited=True)
    assert made.size == 50
    assert not made.answered(is_awaited=True)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_part_again_after_many_answers_without_a_wait(interrupted: bool):
    made = begun()
    assert made.answered(is_awaited=True)
    for _ in range(9):
        assert not made.answered(is_awaited=False)
    if interrupted:
        assert not made.answered(is_awaited=True)
    assert made.answered(is_awaited=False) is not interrupted
    assert made.size == (50 if interrupted else 30)


def test_there_is_always_room_for_something():
    assert ReadAhead(1).size == 1
