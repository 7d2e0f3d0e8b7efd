"""The values of ``-o``."""

import click
import pytest

from kafkaio._cli.records.places import PLACES, Place, Places
from kafkaio._runtime.clock import wall_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Places(Place("earliest"))),
        ("start", Places(Place("earliest"))),
        ("end", Places(Place("latest"))),
        ("17", Places(Place("offset", 17))),
        ("-3", Places(Place("back", 3))),
        ("@1700000000000", Places(Place("time", 1_700_000_000_000))),
        ("@2023-11-14T22:13:20", Places(Place("time", 1_700_000_000_000))),
        ("@2023-11-14T23:13:20+01:00", Places(Place("time", 1_700_000_000_000))),
        ("3..5", Places(Place("offset", 3), Place("offset", 5))),
        ("start..@5", Places(Place("earliest"), Place("time", 5))),
        ("..end", Places(Place("earliest"), Place("latest"))),
        ("-5..", Places(Place("back", 5))),
    ],
)
def test_places_are_read(text: str, expected: Places) -> None:
    assert PLACES.convert(text, None, None) == expected


def test_a_time_before_now() -> None:
    before = wall_ms()
    found = PLACES.convert("@-2m", None, None)

    assert before - 120_000 <= found.start.number <= wall_ms() - 120_000


@pytest.mark.parametrize("text", ["", "a", "@", "@tomorrow", "1.5", "3..x", "--3"])
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="none of beginning"):
        PLACES.convert(text, None, None)
