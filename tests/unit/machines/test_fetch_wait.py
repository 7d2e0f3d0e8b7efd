"""How long a broker may keep a fetch that finds nothing."""

from __future__ import annotations

import pytest

from kafkaio._machines.fetch_session import FetchWait


def quiet(wait: FetchWait, asked: object, count: int) -> list[int]:
    """The waits of so many fetches without news."""
    waits = []
    for _ in range(count):
        waits.append(wait.of(asked))
        wait.answered(has_news=False)
    return waits


@pytest.mark.parametrize(
    ("max_wait_ms", "waits"),
    [
        (500, [500, 1000, 2000, 2000]),
        (100, [100, 200, 400, 400]),
        (0, [0, 0, 0, 0]),
        (1500, [1500, 2000, 2000, 2000]),
        (25_000, [25_000, 25_000, 25_000, 25_000]),
    ],
)
def test_waits_grow_while_nothing_comes(max_wait_ms: int, waits: list[int]):
    assert quiet(FetchWait(max_wait_ms, 1), "asked", 4) == waits


def test_who_wants_many_bytes_gets_fewer_in_time():
    assert quiet(FetchWait(500, 2), "asked", 3) == [500, 500, 500]
    assert quiet(FetchWait(500, 0), "asked", 3) == [500, 1000, 2000]


def test_news_end_the_long_waits():
    wait = FetchWait(500, 1)
    assert quiet(wait, "asked", 3) == [500, 1000, 2000]
    assert repr(wait) == "<FetchWait 2000 ms>"
    wait.answered(has_news=True)
    assert quiet(wait, "asked", 2) == [500, 1000]


def test_another_question_ends_the_long_waits():
    wait, before = FetchWait(500, 1), ["one"]
    assert quiet(wait, before, 2) == [500, 1000]
    assert quiet(wait, ["one"], 2) == [500, 1000]


def test_short_waits_double_while_nothing_is_taken():
    wait = FetchWait(100, 1)
    assert [wait.short(progress=7) for _ in range(5)] == [20, 40, 80, 100, 100]
    assert [wait.short(progress=8) for _ in range(2)] == [20, 40]


def test_the_number_itself_does_not_grow_for_ever():
    wait = FetchWait(100, 1)
    for _ in range(1000):
        wait.short(progress=7)
    assert wait._short == 100


def test_short_waits_end_the_long_ones():
    wait, asked = FetchWait(500, 1), "asked"
    assert quiet(wait, asked, 3) == [500, 1000, 2000]
    assert wait.short(progress=1) == 20
    wait.answered(has_news=False)
    assert wait.of(asked) == 500
