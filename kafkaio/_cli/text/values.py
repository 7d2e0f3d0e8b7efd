"""Values of options: patterns of names, times, durations, partitions, intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

import click

from kafkaio._cli.text.exits import CommandFailed
from kafkaio.types import TopicPartition

#: The most seconds that fit into milliseconds of 32 bits, the type in Kafka's requests:
#: 24 days.
MOST_SECONDS: Final = 2_147_483
_GLOB = re.compile(r"[*?\[]")
_TIME = r"(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?"
#: In ISO 8601 an ``M`` before the ``T`` is a month, which has no length.
_DURATIONS = (
    re.compile(rf"P(?:(?P<d>\d+)D)?(?:T{_TIME})?", re.IGNORECASE),
    re.compile(rf"(?:(?P<d>\d+)D)?{_TIME}", re.IGNORECASE),
)
#: Names of places in a log, those of kcat, rpk and Kafka's tools included. The negative
#: numbers are the sentinels of ListOffsets, which kafka-get-offsets takes.
_PLACES = {
    "earliest": "earliest",
    "beginning": "earliest",
    "start": "earliest",
    "-2": "earliest",
    "latest": "latest",
    "end": "latest",
    "-1": "latest",
    "max-timestamp": "max_timestamp",
    "-3": "max_timestamp",
    "earliest-local": "earliest_local",
    "-4": "earliest_local",
    "latest-tiered": "latest_tiered",
    "-5": "latest_tiered",
    "earliest-pending-upload": "earliest_pending_upload",
    "-6": "earliest_pending_upload",
}


def has_pattern(texts: Iterable[str], *, regex: bool) -> bool:
    """Return whether names are patterns, which are matched against existing names."""
    return regex or any(_GLOB.search(text) for text in texts)


def chosen(
    kind: str, patterns: Sequence[str], known: Iterable[str], *, regex: bool = False
) -> list[str]:
    """Return the names that match patterns, each once, in the order of the patterns.

    Args:
        kind: the kind of thing that is named, for messages: ``topic``.
        patterns: names or globs; all known names if empty.
        known: the names that exist.
        regex: whether the patterns are regular expressions of whole names.

    Raises:
        CommandFailed: a pattern matches nothing. A plain name is returned unchecked.
        click.UsageError: a regular expression is invalid.
    """
    names = list(known)
    found: dict[str, None] = {}
    for pattern in patterns or ("*",):
        if regex:
            matching = [each for each in names if _expression(pattern).fullmatch(each)]
        elif _GLOB.search(pattern):
            matching = [each for each in names if fnmatchcase(each, pattern)]
        else:
            # The broker's error for a name that does not exist says more than a list
            # that lacks it: it may exist and be hidden from this user.
            matching = [pattern]
        if patterns and not matching:
            raise CommandFailed(f"no {kind} matches {pattern!r}")
        found |= dict.fromkeys(matching)
    return list(found)


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.UsageError(
            f"{text!r} is not a valid regular expression: {error}"
        ) from None


class Seconds(click.ParamType[float]):
    """A number of seconds within the limits of timers and requests.

    Args:
        least: the shortest time allowed; 0 for any positive time.
    """

    name = "seconds"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read a number of seconds."""
        least, most = self._least, MOST_SECONDS
        try:
            found = float(value)
        except ValueError:
            return self.fail(f"{value!r} is not a number of seconds", param, ctx)
        # False for NaN, too, which is neither smaller nor larger than anything.
        if found > 0 and least <= found <= most:
            return found
        limits = f"at least {least:g}" if least else "above 0"
        return self.fail(f"{value} is not {limits} and at most {most}", param, ctx)


def time_of(text: str) -> datetime:
    """Parse a time: ISO 8601, in UTC if it has no zone, or ``@`` milliseconds.

    Raises:
        click.UsageError: the text has another form, or is before 1970.
    """
    plain = text.removeprefix("@")
    try:
        if plain.isdecimal():
            return datetime.fromtimestamp(int(plain) / 1000, UTC)
        found = datetime.fromisoformat(plain)
    except (ValueError, OverflowError, OSError):
        raise click.UsageError(
            f"{text!r} is not a time such as 2026-01-31T08:00:00Z or @1769846400000"
        ) from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    # Kafka has milliseconds since 1970, and negative ones are sentinels in ListOffsets.
    if found.timestamp() < 0:
        raise click.UsageError(f"{text!r} is before 1970")
    return found


def duration_of(text: str) -> timedelta:
    """Parse a duration: ISO 8601 (``P1DT2H``) or short (``1d2h``, ``90s``).

    Raises:
        click.UsageError: the text has another form.
    """
    # Every part of both patterns is optional: "" and "P" match, and have no groups.
    matches = (each.fullmatch(text) for each in _DURATIONS)
    found = next((each for each in matches if each and any(each.groups())), None)
    if found is None:
        raise click.UsageError(
            f"{text!r} is not a duration such as 90s, 2h30m, 7d or P1DT2H"
        )
    days, hours, minutes, seconds = (float(found[name] or 0) for name in "dhms")
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise click.UsageError(f"{text!r} is too long") from None


def moment_of(text: str) -> str | datetime:
    """Parse a place in a log: ``earliest``, ``latest``, ``max-timestamp``, a time.

    Raises:
        click.UsageError: the text is neither a place nor a time.
    """
    place = _PLACES.get(text)
    return time_of(text) if place is None else place


def partitions_of_topic(text: str) -> tuple[str, list[int] | None]:
    """Parse ``TOPIC`` or ``TOPIC:0,1,4-6``; None stands for all partitions.

    Raises:
        click.UsageError: the partitions are not numbers, or a range counts backward.
    """
    # The name of a topic cannot contain a colon.
    topic, colon, numbers = text.partition(":")
    if not colon:
        return topic, None
    found: list[int] = []
    for part in numbers.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.UsageError(f"{text!r} is not TOPIC or TOPIC:0,1,4-6")
        numbers_meant = range(int(first), int(last or first) + 1)
        if not numbers_meant:
            raise click.UsageError(f"{text!r}: {part} counts backward")
        found += numbers_meant
    return topic, list(dict.fromkeys(found))


def time_at(milliseconds: int | None) -> datetime | None:
    """Return the time of milliseconds since the epoch; None if they are negative."""
    if milliseconds is None or milliseconds < 0:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def partition_row(partition: TopicPartition) -> dict[str, object]:
    """Return the fields `PARTITION` of a row about a partition."""
    return {"topic": partition.topic, "partition": partition.partition}
