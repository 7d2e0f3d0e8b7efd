"""The values of ``-o``."""

import click
import pytest

from kafkaio._cli.records.places import PLACE_RANGE, Place, PlaceRange
from kafkaio._runtime.clock import wall_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", PlaceRange(Place("earliest"))),
        ("start", PlaceRange(Place("earliest"))),
        ("end", PlaceRange(Place("latest"))),
        ("17", PlaceRange(Place("offset", 17))),
        ("-3", PlaceRange(Place("back", 3))),
        ("@1700000000000", PlaceRange(Place("time", 1_700_000_000_000))),
        ("@2023-11-14T22:13:20", PlaceRange(Place("time", 1_700_000_000_000))),
        ("@2023-11-14T23:13:20+01:00", PlaceRange(Place("time", 1_700_000_000_000))),
        ("3..5", PlaceRange(Place("offset", 3), Place("offset", 5))),
        ("start..@5", PlaceRange(Place("earliest"), Place("time", 5))),
        ("..end", PlaceRange(Place("earliest"), Place("latest"))),
        ("-5..", PlaceRange(Place("back", 5))),
    ],
)
def test_places_are_read(text: str, expected: PlaceRange) -> None:
    assert PLACE_RANGE.convert(text, None, None) == expected


def test_a_time_before_now() -> None:
    before = wall_ms()
    found = PLACE_RANGE.convert("@-2m", None, None)

    assert before - 120_000 <= found.start.number <= wall_ms() - 120_000


@pytest.mark.parametrize("text", ["", "a", "@", "@tomorrow", "1.5", "3..x", "--3"])
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="none of beginning"):
        PLACE_RANGE.convert(text, None, None)
