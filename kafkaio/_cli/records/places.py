"""Places in topics: the values of ``-o``, and their offsets.

| value | meaning |
|---|---|
| ``beginning`` (``start``, ``earliest``) | the first record kept |
| ``end`` (``latest``) | after the last record |
| ``N`` | an offset |
| ``-N`` | N records before the end |
| ``@MS``, ``@2026-01-31T12:00`` | the first record not older than a time |
| ``@-15m`` | a time before now |
| ``A..B`` | from A up to B, excluding B; each may be left out |

A time without a zone is in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from kafkaio._cli.text.values import duration_of, time_of
from kafkaio._runtime.clock import wall_ms
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._consumer import Consumer

_NAMES: Final = {
    "beginning": "earliest",
    "start": "earliest",
    "earliest": "earliest",
    "end": "latest",
    "latest": "latest",
}
_NUMBER: Final = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Place:
    """A place in a partition.

    Attributes:
        kind: ``earliest``, ``latest``, ``offset``, ``back`` (records before the end) or
            ``time``.
        number: the offset, the number of records, or milliseconds since the epoch.
    """

    kind: str
    number: int = 0


#: Without -o, and where a range such as "..B" leaves its start out.
BEGINNING: Final = Place("earliest")


@dataclass(frozen=True)
class PlaceRange:
    """A range of offsets.

    Attributes:
        start: the first place of the range.
        end: the first place after the range; None if it has no end.
    """

    start: Place = BEGINNING
    end: Place | None = None


class _PlaceRangeType(click.ParamType[PlaceRange]):
    """The values of ``-o``."""

    name = "offset"

    def convert(self, value: Any, param: Any, ctx: Any) -> PlaceRange:
        """Parse a value; see the top of the module."""
        if isinstance(value, PlaceRange):
            return value
        # "A..", "..B" and ".." are ranges; a value without dots is a start.
        start, dots, end = str(value).partition("..")
        try:
            return PlaceRange(
                _place(start) if start or not dots else BEGINNING,
                _place(end) if end else None,
            )
        except (ValueError, click.UsageError):
            return self.fail(
                f"{value!r} is none of beginning, end, N, -N, @TIME, A..B", param, ctx
            )


PLACE_RANGE: Final = _PlaceRangeType()


def _place(text: str) -> Place:
    if text in _NAMES:
        return Place(_NAMES[text])
    if text.startswith("@"):
        return Place("time", _milliseconds(text[1:]))
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    return Place("back", -number) if text.startswith("-") else Place("offset", number)


def _milliseconds(text: str) -> int:
    # "@-15m" is relative to now, and the time is fixed when the option is read.
    if text.startswith("-"):
        return max(0, wall_ms() - round(duration_of(text[1:]).total_seconds() * 1000))
    return max(0, round(time_of(text).timestamp() * 1000))


async def partitions_of(
    consumer: Consumer, topics: Sequence[str], numbers: Iterable[int] = ()
) -> list[TopicPartition]:
    """Return partitions of topics, in order.

    Args:
        consumer: asks the cluster.
        topics: names of topics.
        numbers: the partitions wanted; all if empty.

    Raises:
        click.UsageError: a topic has no such partition.
        UnknownTopicOrPartition: a topic does not exist.
    """
    wanted = set(numbers)
    found = []
    # A topic that is named twice is read once.
    for topic in dict.fromkeys(topics):
        there = await consumer.partitions_for_topic(topic)
        if absent := sorted(wanted - there):
            raise click.UsageError(f"{topic} has no partition {absent[0]}")
        found += [TopicPartition(topic, n) for n in sorted(wanted or there)]
    return found


async def find_places(
    consumer: Consumer, partitions: Sequence[TopicPartition], place: Place
) -> dict[TopicPartition, int]:
    """Return the offsets of a place, not before the first record kept.

    A time after the last record is the end.
    """
    # Offsets are clamped between both ends: one out of range would be reset by
    # auto.offset.reset, perhaps to the other end of the log.
    first = await consumer.beginning_offsets(partitions)
    last = await consumer.end_offsets(partitions)
    if place.kind == "earliest":
        return first
    if place.kind == "latest":
        return last
    if place.kind == "time":
        times = await consumer.offsets_for_times(
            dict.fromkeys(partitions, place.number)
        )
        found = {tp: last[tp] if at is None else at.offset for tp, at in times.items()}
    elif place.kind == "back":
        found = {tp: last[tp] - place.number for tp in partitions}
    else:
        found = {tp: min(place.number, last[tp]) for tp in partitions}
    return {tp: max(first[tp], found[tp]) for tp in partitions}
