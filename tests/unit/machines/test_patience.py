"""How long a commit is tried, by the reason for it."""

from __future__ import annotations

from math import inf

import pytest

from kafkaio._machines.patience import Doubt, Patience


def test_a_commit_of_the_user_has_the_time_that_the_user_gives() -> None:
    assert Patience(60).time == 60
    assert Patience(60).doubt == 3


def test_an_automatic_commit_doubts_for_a_moment() -> None:
    assert Patience.automatic(5) == Patience(5, 1)


@pytest.mark.parametrize(
    ("limit", "deadlines", "seconds"),
    [
        (60, (), 12),
        (60, (300, inf), 12),
        (60, (10, 300), 5),
        (3, (300,), 3),
        (60, (300, 8), 4),
        (60, (-1,), 0),
    ],
)
def test_a_release_spends_a_part_of_what_is_left(
    limit: float, deadlines: tuple[float, ...], seconds: float
) -> None:
    assert Patience.before_release(limit, *deadlines) == Patience(seconds, 1)


def test_doubt_lasts_from_the_first_answer_on() -> None:
    doubt = Doubt(3)
    said = [doubt.is_over(at) for at in (100, 101, 102.9, 103)]
    assert said == [False, False, False, True]
